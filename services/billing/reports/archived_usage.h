// Usage of archived months is kept by UTC day.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/time_units.h"
#include "common/sql/sql.h"

namespace tollgate::billing {

// Returns the end of the workspace's archived months; 0: none is archived.
sql::SqlResult<int64_t> ReadArchivedUntil(sql::Connection& db, const std::string& workspace);

// A day of an archived month counts at its noon: on the day with the same date in time zones up to
// 12 hours away, and in exactly one of two periods that meet. Returns the start of the first day
// whose noon is at this time or later.
inline int64_t FirstDayByNoon(int64_t us) { return RoundUp(us - kDayUs / 2, kDayUs); }

}  // namespace tollgate::billing
