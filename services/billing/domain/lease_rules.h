// Limits of names and amounts in leases and admissions. Internal to this folder.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "common/money/money.h"

namespace tollgate::billing {

// Same limit as for posted credit.
inline constexpr int64_t kMaxLeaseNanoUsd = 1'000'000'000 * kNanoPerUsd;

inline bool IsMonth(int32_t month) {
  return month >= 197001 && month <= 999912 && month % 100 >= 1 && month % 100 <= 12;
}

// A lessee is stored as text and appears in lists, so only printable names are allowed.
inline bool IsLessee(const std::string& name) {
  return !name.empty() && name.size() <= 64 &&
         std::ranges::all_of(name, [](char c) { return c > ' ' && c <= '~'; });
}

inline bool IsLeaseAmount(int64_t nano_usd) {
  return nano_usd >= 0 && nano_usd <= kMaxLeaseNanoUsd;
}

}  // namespace tollgate::billing
