// The keys that seal the reasoning which clients keep for the next request (ADR 0017).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tollgate::gateway {

struct ReasoningKeys {
  // Never empty, as read by ReadSealKeys: the first key seals, all keys unseal.
  std::vector<std::string> keys;
  // Lifetime of sealed reasoning in seconds.
  int64_t lifetime_s = 30 * 86'400;
};

}  // namespace tollgate::gateway
