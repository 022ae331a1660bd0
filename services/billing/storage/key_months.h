// Months of keys that a batch may change. Internal to the ledger's storage.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "common/sql/sql.h"
#include "services/billing/domain/ledger.h"

namespace tollgate::billing {

struct WantedKeyMonth {
  std::string_view workspace;
  std::string_view key_id;
  int32_t month = 0;
  auto operator<=>(const WantedKeyMonth&) const = default;
};

// Rows that the batch may create: for the first request with a quota, or for a correction of a
// request of another month, which may still be open before this batch.
std::vector<WantedKeyMonth> BeginningKeyMonths(std::span<const Operation> operations,
                                               int64_t now_us, const State& state);
// Loads these rows and all others that the operations may change.
sql::SqlResult<void> LoadKeyMonths(sql::Connection& db, std::span<const Operation> operations,
                                   std::span<const WantedKeyMonth> beginning, int64_t now_us,
                                   State& state);
// Creates the rows that were not found, with the key's spend in the roll-ups.
sql::SqlResult<void> StartKeyMonths(sql::Connection& db, std::span<const WantedKeyMonth> beginning,
                                    State& state);

}  // namespace tollgate::billing
