// The intervals of a usage report: where hours and days begin in a time zone. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/admin/failure.h"

namespace tollgate::billing {

enum class Interval : uint8_t { kQuarterHour, kHour, kDay, kNone };

// Starts of the intervals that cover [start, end); the first one is start, and end is last. The
// time zone is an IANA name; "" is UTC.
admin::AdminResult<std::vector<int64_t>> IntervalBounds(int64_t start_us, int64_t end_us,
                                                        Interval interval,
                                                        const std::string& time_zone);
bool IsUtc(const std::string& time_zone);

}  // namespace tollgate::billing
