#include "services/billing/storage/leases.h"

#include <algorithm>
#include <string>

#include "common/base/ledger_shard.h"
#include "common/base/try.h"
#include "services/billing/storage/row_texts.h"

namespace tollgate::billing {
namespace {

using sql::Param;
using sql::Row;
using sql::SqlResult;

constexpr std::string_view kLeaseColumns =
    "shard, workspace, lessee, month, granted, used, expires_us";
constexpr int kLeaseColumnCount = 7;
constexpr sql::Connection::KeyColumn kLeaseKey[] = {{"shard", Param::Kind::kInt},
                                                    {"workspace", Param::Kind::kText},
                                                    {"lessee", Param::Kind::kText},
                                                    {"month", Param::Kind::kInt}};

Lease ReadLease(const Row& row) {
  return {row.Text(1), row.Text(2), static_cast<int32_t>(row.Int(3)),
          row.Int(4),  row.Int(5),  row.Int(6)};
}

}  // namespace

std::vector<LeaseName> LeasesOf(std::span<const Operation> operations, int64_t now_us) {
  std::vector<LeaseName> names;
  for (const Operation& op : operations) AddLeasesOf(op, now_us, names);
  // Groups the keys by ledger shard.
  std::sort(names.begin(), names.end(), [](const LeaseName& a, const LeaseName& b) {
    const int32_t of_a = LedgerShard(a.workspace);
    const int32_t of_b = LedgerShard(b.workspace);
    return of_a != of_b ? of_a < of_b : a < b;
  });
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

SqlResult<void> LoadLeases(sql::Connection& db, std::span<const LeaseName> names, State& state) {
  if (names.empty()) return {};
  static const std::string kHead = Select(kLeaseColumns, "lease");
  std::vector<Param> keys;
  for (const LeaseName& name : names) {
    keys.insert(keys.end(), {LedgerShard(name.workspace), name.workspace, name.lessee, name.month});
  }
  return db.QueryKeys(kHead, kLeaseKey, keys, "", [&state](const Row& row) {
    Lease lease = ReadLease(row);
    std::string key = LeaseKey({lease.workspace, lease.lessee, lease.month});
    state.leases.emplace(std::move(key), std::move(lease));
  });
}

SqlResult<void> SaveLeases(sql::Connection& db, const State& state, const Applied& applied) {
  if (applied.leases.empty()) return {};
  static const std::string kHead = Insert(kLeaseColumns, "lease");
  static const std::string kUpdate =
      Update("shard, workspace, lessee, month", "granted, used, expires_us");
  std::vector<Param> cells;
  for (const LeaseName& name : applied.leases) {
    const int32_t shard = LedgerShard(name.workspace);
    const auto found = state.leases.find(LeaseKey(name));
    if (found != state.leases.end()) {
      const Lease& lease = found->second;
      cells.insert(cells.end(), {shard, lease.workspace, lease.lessee, lease.month,
                                 lease.granted_nano_usd, lease.used_nano_usd, lease.expires_us});
      continue;
    }
    TRY(db.Execute(
        "DELETE FROM lease WHERE shard = $1 AND workspace = $2 AND lessee = $3 AND month = $4",
        {shard, name.workspace, name.lessee, name.month}));
  }
  if (cells.empty()) return {};
  TRY(db.ExecuteRows(kHead, kLeaseColumnCount, cells, kUpdate));
  return {};
}

SqlResult<std::vector<Lease>> ReadLeases(sql::Database& database) {
  std::vector<Lease> leases;
  auto done = database.Transact(sql::TxMode::kRead, [&](sql::Connection& db) {
    leases.clear();
    return db.Query("SELECT " + std::string(kLeaseColumns) + " FROM lease", {},
                    [&](const Row& row) { leases.push_back(ReadLease(row)); });
  });
  if (!done.ok()) return Fail{std::move(done).error()};
  return leases;
}

SqlResult<std::vector<Lease>> ReadLeases(sql::Connection& db, const std::string& workspace) {
  std::vector<Lease> leases;
  TRY(db.Query(
      "SELECT " + std::string(kLeaseColumns) + " FROM lease WHERE shard = $1 AND workspace = $2",
      {LedgerShard(workspace), workspace},
      [&](const Row& row) { leases.push_back(ReadLease(row)); }));
  return leases;
}

SqlResult<std::vector<std::string>> ReadRecalledWorkspaces(sql::Database& database) {
  std::vector<std::string> workspaces;
  auto done = database.Transact(sql::TxMode::kRead, [&](sql::Connection& db) {
    workspaces.clear();
    return db.Query(
        "SELECT DISTINCT l.workspace FROM lease l"
        " JOIN wallet w ON w.shard = l.shard AND w.workspace = l.workspace"
        " LEFT JOIN cap_month m"
        " ON m.shard = l.shard AND m.workspace = l.workspace AND m.month = l.month"
        " WHERE w.frozen <> 0 OR m.spent + m.held > w.cap ORDER BY 1",
        {}, [&](const Row& row) { workspaces.push_back(row.Text(0)); });
  });
  if (!done.ok()) return Fail{std::move(done).error()};
  return workspaces;
}

}  // namespace tollgate::billing
