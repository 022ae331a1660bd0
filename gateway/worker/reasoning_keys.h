// What seals the reasoning that clients keep for the next request (ADR 0017).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tollgate::gateway {

struct ReasoningKeys {
  // Never empty, as ReadSealKeys reads them: the first one seals, all of them unseal.
  std::vector<std::string> keys;
  // Seconds that sealed reasoning is accepted for.
  int64_t lifetime_s = 30 * 86'400;
};

}  // namespace tollgate::gateway
