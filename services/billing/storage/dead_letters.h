// The table of refused settlements. Written in the transaction that refuses them (store.cc); read
// for lists and for the gauge.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/sql/sql.h"
#include "services/billing/domain/ledger.h"

namespace tollgate::billing {

// For one id; what is refused beyond it is only counted and logged.
inline constexpr int kMaxDeadLettersPerId = 16;

// The dead letters that the operations name.
sql::SqlResult<void> LoadDeadLetters(sql::Connection& db, std::span<const Operation> operations,
                                     State& state);
// Drops from `applied` the new dead letters that are stored already, with the same settle, and
// numbers the others.
sql::SqlResult<void> NumberDeadLetters(sql::Connection& db, Applied& applied);
sql::SqlResult<void> SaveDeadLetters(sql::Connection& db, const State& state,
                                     const Applied& applied);

struct DeadLetterQuery {
  std::string workspace;  // empty: all
  bool resolved = false;  // also those
  int limit = 100;
  // The last one of the page before; at_us 0: from the newest.
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
