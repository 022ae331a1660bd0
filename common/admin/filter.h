// List filters: field = "v", field >= "time", field < "time", joined by AND.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/admin/failure.h"

namespace tollgate::admin {

struct FilterTerm {
  enum class Op { kEquals, kAtLeast, kBefore };
  std::string field;
  Op op = Op::kEquals;
  std::string value;
};

// Names the fields that are compared with =, and the time fields that are compared with >= and <.
// Any other field, and a comparison given twice, is INVALID_ARGUMENT on filter.
AdminResult<std::vector<FilterTerm>> ParseFilter(std::string_view text,
                                                 std::span<const std::string_view> texts,
                                                 std::span<const std::string_view> times = {});
// The time of a term in microseconds since the Unix epoch.
AdminResult<int64_t> FilterTime(const FilterTerm& term);

}  // namespace tollgate::admin
