#include "services/billing/storage/idempotency_keys.h"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <vector>

#include "common/base/ledger_shard.h"
#include "common/base/sort_unique.h"
#include "common/base/try.h"

namespace tollgate::billing {
namespace {

using sql::Param;
using sql::Row;
using sql::SqlResult;

using KeyColumn = sql::Connection::KeyColumn;
constexpr KeyColumn kDigestKey[] = {{"shard", Param::Kind::kInt},
                                    {"workspace", Param::Kind::kText},
                                    {"digest", Param::Kind::kBlob}};

}  // namespace

SqlResult<void> LoadIdempotencyKeys(
    sql::Connection& db, std::span<const Operation> operations,
    const std::function<SqlResult<void>(std::span<const Param> keys)>& load_holds, State& state) {
  std::vector<std::tuple<int32_t, std::string_view, std::string_view>> names;
  for (const Operation& op : operations) {
    const auto* authorize = std::get_if<Authorize>(&op);
    if (authorize == nullptr || authorize->idempotency_key_digest.empty()) continue;
    names.emplace_back(LedgerShard(authorize->workspace), authorize->workspace,
                       authorize->idempotency_key_digest);
  }
  // A late settle of such a hold needs to know whether another request has taken its place.
  for (const auto& [id, hold] : state.holds) {
    if (hold.state != HoldState::kExpiredVoid || hold.idempotency_key_digest.empty()) continue;
    names.emplace_back(LedgerShard(hold.workspace), hold.workspace, hold.idempotency_key_digest);
  }
  if (names.empty()) return {};
  SortUnique(names);
  std::vector<Param> keys;
  for (const auto& [shard, workspace, digest] : names) {
    keys.insert(keys.end(), {shard, workspace, Param::Blob(digest)});
  }
  std::vector<std::pair<int32_t, std::string>> holds;
  auto done = db.QueryKeys(
      "SELECT workspace, digest, request, body_digest, created_us FROM idempotency WHERE",
      kDigestKey, keys, "", [&](const Row& row) {
        IdempotencyKey key;
        key.workspace = row.Text(0);
        key.digest = row.Text(1);
        key.request_id = Id::FromBytes(row.Bytes(2)).value_or(Id());
        key.body_digest = row.Text(3);
        key.created_us = row.Int(4);
        if (!state.holds.contains(key.request_id)) {
          holds.emplace_back(LedgerShard(key.workspace), key.request_id.ToBytes());
        }
        std::string name = IdempotencyRowKey(key.workspace, key.digest);
        state.idempotency_keys.emplace(std::move(name), std::move(key));
      });
  if (!done.ok() || holds.empty()) return done;
  std::sort(holds.begin(), holds.end());
  keys.clear();
  for (const auto& [shard, id] : holds) keys.insert(keys.end(), {shard, Param::Blob(id)});
  return load_holds(keys);
}

SqlResult<void> SaveIdempotencyKeys(sql::Connection& db, const State& state,
                                    const Applied& applied) {
  if (applied.idempotency_keys.empty()) return {};
  std::vector<std::string> ids;
  ids.reserve(applied.idempotency_keys.size());
  std::vector<Param> cells;
  for (const std::string& name : applied.idempotency_keys) {
    const IdempotencyKey& key = state.idempotency_keys.at(name);
    ids.push_back(key.request_id.ToBytes());
    cells.insert(cells.end(),
                 {LedgerShard(key.workspace), key.workspace, Param::Blob(key.digest),
                  Param::Blob(ids.back()), Param::Blob(key.body_digest), key.created_us});
  }
  TRY(db.ExecuteRows(
      "INSERT INTO idempotency (shard, workspace, digest, request, body_digest, created_us) VALUES",
      6, cells,
      "ON CONFLICT (shard, workspace, digest) DO UPDATE SET request = excluded.request,"
      " body_digest = excluded.body_digest, created_us = excluded.created_us, answer = NULL"));
  return {};
}

SqlResult<void> StoreAnswer(sql::Database& database, const std::string& workspace,
                            const std::string& digest, const Id& request_id,
                            const std::string& sealed) {
  const std::string id = request_id.ToBytes();
  return database.Transact(sql::TxMode::kWrite, [&](sql::Connection& db) -> SqlResult<void> {
    TRY(db.Execute(
        "UPDATE idempotency SET answer = $1 WHERE shard = $2 AND workspace = $3 AND digest = $4"
        " AND request = $5",
        {Param::Blob(sealed), LedgerShard(workspace), workspace, Param::Blob(digest),
         Param::Blob(id)}));
    return {};
  });
}

SqlResult<std::string> ReadAnswer(sql::Database& database, const std::string& workspace,
                                  const std::string& digest) {
  TRY(auto connection, database.Borrow());
  std::string sealed;
  TRY(
      connection->Query("SELECT answer FROM idempotency WHERE shard = $1 AND workspace = $2"
                        " AND digest = $3 AND answer IS NOT NULL",
                        {LedgerShard(workspace), workspace, Param::Blob(digest)},
                        [&](const Row& row) { sealed = row.Text(0); }));
  return sealed;
}

SqlResult<int64_t> DeleteIdempotencyKeys(sql::Database& database, int64_t before_us, int limit) {
  int64_t count = 0;
  auto done = database.Transact(sql::TxMode::kWrite, [&](sql::Connection& db) -> SqlResult<void> {
    // Compares the time again, since the row may have got a new request meanwhile.
    TRY(auto deleted,
        db.Execute("DELETE FROM idempotency WHERE created_us < $1 AND (shard, workspace, digest) IN"
                   " (SELECT shard, workspace, digest FROM idempotency WHERE created_us < $1"
                   " ORDER BY created_us LIMIT $2)",
                   {before_us, limit}));
    count = deleted;
    return {};
  });
  if (!done.ok()) return Fail{std::move(done).error()};
  return count;
}

}  // namespace tollgate::billing
