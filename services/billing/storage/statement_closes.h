// Which months of a workspace are closed: no later entry changes their statements.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/time_units.h"
#include "common/sql/sql.h"

namespace tollgate::billing {

// A row closes its month and all earlier ones. sequence: newest entry at that time; later entries
// are in the statements of later months, even if a clock was set back and dates them earlier.
inline constexpr std::string_view kStatementCloseTable = R"sql(
CREATE TABLE statement_close (
  shard {int} NOT NULL,
  workspace {text} NOT NULL,
  month {int} NOT NULL,
  sequence {int} NOT NULL,
  at_us {int} NOT NULL,
  PRIMARY KEY (shard, workspace, month)
) {keyed};
)sql";

// Entries that were made just before the end of a month are in the roll-ups by then.
inline constexpr int64_t kCloseAfterUs = kHourUs;

// The newest month (YYYYMM) that may be closed at this time; 0 at the time 0.
int32_t LastClosableMonth(int64_t now_us);

struct StatementClose {
  int32_t month = 0;
  int64_t sequence = 0;
  int64_t at_us = 0;
};

class StatementCloses {
 public:
  StatementCloses() = default;
  // By month.
  explicit StatementCloses(std::vector<StatementClose> closes) : closes_(std::move(closes)) {}

  const std::vector<StatementClose>& all() const { return closes_; }
  // All 0 if no month is closed.
  StatementClose newest() const { return closes_.empty() ? StatementClose() : closes_.back(); }
  // The first month whose statement may have this entry; 0: any.
  int32_t FirstMonth(int64_t sequence) const;

 private:
  std::vector<StatementClose> closes_;
};

sql::SqlResult<StatementCloses> ReadStatementCloses(sql::Connection& db,
                                                    const std::string& workspace);

// Closes a month within a transaction. Changes nothing if it is closed already.
sql::SqlResult<void> CloseStatements(sql::Connection& db, const std::string& workspace,
                                     const StatementClose& close);

}  // namespace tollgate::billing
