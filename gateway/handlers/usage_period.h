// The query of GET /api/v1/usage: which period is asked for. spec: gateway-spec.md "Endpoints",
// decisions.md 29.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/error/error.h"

namespace tollgate::gateway {

// Microseconds since the epoch, end exclusive.
struct UsagePeriod {
  int64_t start_us = 0;
  int64_t end_us = 0;
  // Nobody set the end: it is now, and whatever the ledger has by then belongs to the report.
  bool until_now = false;
};

// query is what stands behind "?", still percent-encoded.
//  - `range` counts back from now: "24h", "7d" and "30d" to the microsecond, "month" to the first
//    of this UTC month. It is the default, as "month".
//  - `start` and `end` are dates or RFC 3339 times. Without `end` the period ends now; without
//    `start` it begins with the UTC month in which it ends. They and `range` exclude each other.
//  - At most 366 days. Other parameters are ignored; each of these may stand there once.
// A 400 that names the parameter otherwise. "+" stands for itself, as it does in a time's offset.
Result<UsagePeriod> ParseUsageQuery(std::string_view query, int64_t now_us);

}  // namespace tollgate::gateway
