// The table of refused settlements. Written in the transaction that refuses them (store.cc), read
// for lists and for the gauge.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/sql/sql.h"
#include "services/billing/domain/ledger.h"

namespace tollgate::billing {

// Maximum per id. Further refused settlements are only counted and logged.
inline constexpr int kMaxDeadLettersPerId = 16;

// Loads the dead letters that the operations name.
sql::SqlResult<void> LoadDeadLetters(sql::Connection& db, std::span<const Operation> operations,
                                     State& state);
// Drops new dead letters from `applied` that are already stored with the same settle, and numbers
// the others.
sql::SqlResult<void> NumberDeadLetters(sql::Connection& db, Applied& applied);
sql::SqlResult<void> SaveDeadLetters(sql::Connection& db, const State& state,
                                     const Applied& applied);

struct DeadLetterQuery {
  std::string workspace;  // empty: all workspaces
  bool resolved = false;  // include resolved ones
  int limit = 100;
  // Last row of the previous page; before_us 0: starts with the newest.
  int64_t before_us = 0;
  Id before_id;
  int32_t before_number = 0;
};
// Newest first.
sql::SqlResult<std::vector<DeadLetter>> ReadDeadLetters(sql::Database& database,
                                                        const DeadLetterQuery& query);
sql::SqlResult<std::optional<DeadLetter>> FindDeadLetter(sql::Database& database,
                                                         const std::string& workspace, const Id& id,
                                                         int32_t number);
sql::SqlResult<int64_t> CountOpenDeadLetters(sql::Database& database);

}  // namespace tollgate::billing
