// Reads the entries of one workspace in order: the hash chain, the balances, and the sums of each
// hold and command. Keeps open holds and those that may still be corrected, nothing else.
#pragma once

#include <deque>
#include <string>
#include <utility>

#include "services/billing/storage/verify_rows.h"

namespace tollgate::billing {

class EntryCheck {
 public:
  // Stops before the first entry that is dated until_us or later, though later ones may be older
  // (a repaired clock); 0: at the last entry.
  EntryCheck(sql::Connection& db, WorkspaceState& state, RowCheck& rows, Findings& findings,
             const VerifyOptions& options, int64_t until_us, RowSink* sink);

  // Checks the next page of entries; false at the end.
  sql::SqlResult<bool> Page();
  // After the last page: no entry of the newest operation is missing.
  sql::SqlResult<void> CloseGroup();
  // Checks what is still open against its rows, without forgetting it.
  sql::SqlResult<void> CheckRest();

 private:
  sql::SqlResult<void> CheckEntry(const Entry& entry);
  void CheckShape(const Entry& entry, const std::string& name);
  void AddToBalances(const Entry& entry, const std::string& name);
  void AddToHold(const Entry& entry, const std::string& name);
  void AddToLease(const Entry& entry, const std::string& name);
  void AddToCommand(const Entry& entry, const std::string& name);
  void AddFlags(const Entry& entry);
  // Holds that expired too long ago to be corrected.
  sql::SqlResult<void> ForgetExpired();

  sql::Connection& db_;
  WorkspaceState& state_;
  RowCheck& rows_;
  Findings& findings_;
  const VerifyOptions& options_;
  const int32_t shard_;
  const int64_t until_us_;
  RowSink* const sink_;
  std::deque<std::pair<int64_t, std::string>> expired_;  // when, and the request
};

}  // namespace tollgate::billing
