// Reads the entries of one workspace in order: the hash chain, the balances, and the sums of each
// hold and command. Keeps only open holds and those that can still be corrected.
#pragma once

#include <deque>
#include <string>
#include <utility>

#include "services/billing/verify/verify_rows.h"

namespace tollgate::billing {

class EntryCheck {
 public:
  // Stops before the first entry dated until_us or later, though later entries may be older (a
  // repaired clock). 0: reads up to the last entry.
  EntryCheck(sql::Connection& db, WorkspaceState& state, RowCheck& rows, Findings& findings,
             const VerifyOptions& options, int64_t until_us, RowSink* sink);

  // Checks the next page of entries. Returns false at the end.
  sql::SqlResult<bool> Page();
  // Called after the last page: the newest operation is complete.
  sql::SqlResult<void> CloseGroup();
  // Checks open holds and commands against their rows, and keeps them.
  sql::SqlResult<void> CheckRest();

 private:
  sql::SqlResult<void> CheckEntry(const Entry& entry);
  void CheckShape(const Entry& entry, const std::string& name);
  void AddToBalances(const Entry& entry, const std::string& name);
  void AddToHold(const Entry& entry, const std::string& name);
  void AddToLease(const Entry& entry, const std::string& name);
  void AddToCommand(const Entry& entry, const std::string& name);
  void AddFlags(const Entry& entry);
  // Drops holds that expired too long ago to be corrected.
  sql::SqlResult<void> ForgetExpired();

  sql::Connection& db_;
  WorkspaceState& state_;
  RowCheck& rows_;
  Findings& findings_;
  const VerifyOptions& options_;
  const int32_t shard_;
  const int64_t until_us_;
  RowSink* const sink_;
  std::deque<std::pair<int64_t, std::string>> expired_;  // time and request
};

}  // namespace tollgate::billing
