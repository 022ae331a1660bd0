// The period that the query of GET /api/v1/usage asks for. See docs/contract.md "Endpoints",
// decision 29.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/error/error.h"

namespace tollgate::gateway {

// Microseconds since the epoch, end exclusive.
struct UsagePeriod {
  int64_t start_us = 0;
  int64_t end_us = 0;
  // The query sets no end: end_us is now, and the report includes whatever the ledger has.
  bool until_now = false;
};

// query: the part after "?", percent-encoded.
//  - `range` counts back from now: "24h", "7d" and "30d" to the microsecond, "month" to the first
//    of this UTC month. The default is "month".
//  - `start` and `end` are dates or RFC 3339 times. Without `end` the period ends now; without
//    `start` it begins with the UTC month in which it ends. They cannot be combined with `range`.
//  - At most 366 days. Other parameters are ignored; each of these may be given once.
// Fails with a 400 that names the parameter. "+" is not decoded to a space because times use it in
// their offset.
Result<UsagePeriod> ParseUsageQuery(std::string_view query, int64_t now_us);

}  // namespace tollgate::gateway
