// Compares the rows of holds, usage records and commands with their entries. Reads them by key, a
// few hundred at a time.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/sql/sql.h"
#include "services/billing/verify/verify_findings.h"
#include "services/billing/verify/verify_state.h"

namespace tollgate::billing {

// Receives every row that was read, in the columns of schema.h. Used by the archive.
class RowSink {
 public:
  virtual ~RowSink() = default;
  virtual void OnEntry(const sql::Row& row) = 0;
  virtual void OnHold(const sql::Row& row) = 0;
  virtual void OnUsage(const sql::Row& row) = 0;
};

class RowCheck {
 public:
  // latest_us: time of the newest entry of the whole ledger; 0: does not report overdue holds.
  // ledger: not null if db has one month of the archive. Commands are never archived, so they are
  // read from the ledger; holds that are not in db stay in the state, for the month after it.
  RowCheck(sql::Connection& db, WorkspaceState& state, Findings& findings, int64_t latest_us,
           RowSink* sink, sql::Connection* ledger = nullptr);

  sql::SqlResult<void> AddHold(const std::string& id, const HoldSums& sums);
  sql::SqlResult<void> AddCommand(const std::string& id, const CommandSums& sums);
  // Checks the rows that were added and are not checked yet.
  sql::SqlResult<void> Flush();
  // Called when a correction of this hold follows: moves it back into the state, if it is not
  // checked yet.
  void TakeBack(const std::string& id);
  // Called after the last entry: a hold whose correction was not found is a violation.
  void EndOfEntries() { entries_ended_ = true; }

  // Amounts that open holds of keys with a quota reserve, by MovedKey.
  const std::map<std::string, int64_t>& quota_held() const { return quota_held_; }

 private:
  sql::SqlResult<void> FlushHolds();
  sql::SqlResult<void> FlushCommands();
  // Whether entries that follow have already corrected the row.
  bool IsAhead(const Hold& hold, const HoldSums& sums) const;
  void CheckHold(const Hold& hold, const HoldSums& sums);
  void CheckClosed(const Hold& hold, const HoldSums& sums);
  void CheckUsage(const sql::Row& row, const Hold& hold);
  void CheckCommand(const Command& command, const CommandSums& sums);

  sql::Connection& db_;
  WorkspaceState& state_;
  Findings& findings_;
  const int32_t shard_;
  const int64_t latest_us_;
  RowSink* const sink_;
  sql::Connection* const ledger_;
  bool entries_ended_ = false;
  std::map<std::string, HoldSums> holds_;  // by request id, sorted like the table
  std::map<std::string, CommandSums> commands_;
  std::map<std::string, int64_t> quota_held_;
};

}  // namespace tollgate::billing
