// The rows of leases (docs/design/ledger.md 13). Internal to the ledger's storage, except
// ReadLeases and ReadRecalledWorkspaces.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/sql/sql.h"
#include "services/billing/domain/ledger.h"

namespace tollgate::billing {

// Has one row per lessee and busy workspace.
inline constexpr std::string_view kLeaseTable = R"sql(
CREATE TABLE lease (
  shard {int} NOT NULL,
  workspace {text} NOT NULL,
  lessee {text} NOT NULL,
  month {int} NOT NULL,
  granted {int} NOT NULL,
  used {int} NOT NULL,
  expires_us {int} NOT NULL,
  PRIMARY KEY (shard, workspace, lessee, month),
  CHECK (used >= 0 AND granted >= used)
) {hot};
ALTER TABLE wallet ADD COLUMN leased {int} NOT NULL DEFAULT 0;
ALTER TABLE wallet ADD COLUMN leases {int} NOT NULL DEFAULT 0;
)sql";

// Leases that the operations concern, sorted; usually none.
std::vector<LeaseName> LeasesOf(std::span<const Operation> operations, int64_t now_us);
// The wallets must be locked. Runs no statement if there are no names.
sql::SqlResult<void> LoadLeases(sql::Connection& db, std::span<const LeaseName> names,
                                State& state);
sql::SqlResult<void> SaveLeases(sql::Connection& db, const State& state, const Applied& applied);

// All leases, to find expired ones, or the leases of one workspace.
sql::SqlResult<std::vector<Lease>> ReadLeases(sql::Database& database);
sql::SqlResult<std::vector<Lease>> ReadLeases(sql::Connection& db, const std::string& workspace);
// The workspaces whose leases must end at once, sorted: frozen ones, and those whose leases may
// spend more than the cap allows.
sql::SqlResult<std::vector<std::string>> ReadRecalledWorkspaces(sql::Database& database);

}  // namespace tollgate::billing
