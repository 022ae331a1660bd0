#include "services/billing/storage/dead_letters.h"

#include <algorithm>
#include <map>

#include "common/base/ledger_shard.h"
#include "common/base/try.h"
#include "common/observability/log.h"

namespace tollgate::billing {
namespace {

using sql::Connection;
using sql::Param;
using sql::Row;
using sql::SqlResult;

constexpr std::string_view kDeadLetterColumns =
    "id, number, workspace, at_us, reason, operation, state, resolved_us, actor, note";

std::string SelectWhere(std::string_view condition) {
  return "SELECT " + std::string(kDeadLetterColumns) + " FROM dead_letter WHERE " +
         std::string(condition);
}

DeadLetter ReadDeadLetter(const Row& row) {
  DeadLetter letter;
  letter.id = Id::FromBytes(row.Bytes(0)).value_or(Id());
  letter.number = static_cast<int32_t>(row.Int(1));
  letter.workspace = row.Text(2);
  letter.at_us = row.Int(3);
  letter.reason = static_cast<Deny>(row.Int(4));
  letter.operation = row.Text(5);
  letter.state = static_cast<DeadLetterState>(row.Int(6));
  letter.resolved_us = row.Int(7);
  letter.actor = row.Text(8);
  letter.note = row.Text(9);
  return letter;
}

}  // namespace

SqlResult<void> LoadDeadLetters(Connection& db, std::span<const Operation> operations,
                                State& state) {
  static const std::string kSelect =
      "SELECT " + std::string(kDeadLetterColumns) +
      ", (SELECT a.month FROM archive_workspace a WHERE a.shard = $1 AND a.workspace = $2)"
      " FROM dead_letter WHERE shard = $1 AND workspace = $2 AND id = $3 AND number = $4";
  for (const Operation& operation : operations) {
    const auto* resolve = std::get_if<ResolveDeadLetter>(&operation);
    if (resolve == nullptr) continue;
    const std::string id = resolve->request_id.ToBytes();
    auto done = db.Query(
        kSelect,
        {LedgerShard(resolve->workspace), resolve->workspace, Param::Blob(id), resolve->number},
        [&state](const Row& row) {
          DeadLetter letter = ReadDeadLetter(row);
          if (!row.IsNull(10)) letter.archived_month = static_cast<int32_t>(row.Int(10));
          std::string key = DeadLetterKey(letter.id, letter.number);
          state.dead_letters.emplace(std::move(key), std::move(letter));
        });
    if (!done.ok()) return done;
  }
  return {};
}

SqlResult<void> NumberDeadLetters(Connection& db, Applied& applied) {
  // Stored settles by shard and id, ordered by their numbers.
  std::map<std::pair<int32_t, std::string>, std::vector<std::string>> stored;
  std::vector<DeadLetter> fresh;
  for (DeadLetter& letter : applied.dead_letters) {
    const int32_t shard = LedgerShard(letter.workspace);
    const std::string id = letter.id.ToBytes();
    auto [known, first] = stored.try_emplace({shard, id});
    if (first) {
      TRY(db.Query("SELECT operation FROM dead_letter WHERE shard = $1 AND id = $2 ORDER BY number",
                   {shard, Param::Blob(id)},
                   [&](const Row& row) { known->second.push_back(row.Text(0)); }));
    }
    std::vector<std::string>& settles = known->second;
    if (std::find(settles.begin(), settles.end(), letter.operation) != settles.end()) continue;
    if (settles.size() >= static_cast<size_t>(kMaxDeadLettersPerId)) {
      log::Error("a refused settlement is not stored: its request has too many dead letters",
                 {{"request_id", letter.id.ToHex()}, {"settle", letter.operation}});
      continue;
    }
    settles.push_back(letter.operation);
    letter.number = static_cast<int32_t>(settles.size());
    fresh.push_back(std::move(letter));
  }
  applied.dead_letters = std::move(fresh);
  return {};
}

SqlResult<void> SaveDeadLetters(Connection& db, const State& state, const Applied& applied) {
  for (const DeadLetter& letter : applied.dead_letters) {
    const std::string id = letter.id.ToBytes();
    TRY(db.Execute(
        "INSERT INTO dead_letter (shard, " + std::string(kDeadLetterColumns) +
            ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
        {LedgerShard(letter.workspace), Param::Blob(id), letter.number, letter.workspace,
         letter.at_us, static_cast<int>(letter.reason), Param::Blob(letter.operation),
         static_cast<int>(letter.state), letter.resolved_us, letter.actor, letter.note}));
  }
  for (const std::string& key : applied.resolved_dead_letters) {
    const DeadLetter& letter = state.dead_letters.at(key);
    const std::string id = letter.id.ToBytes();
    TRY(
        db.Execute("UPDATE dead_letter SET state = $1, resolved_us = $2, actor = $3, note = $4"
                   " WHERE shard = $5 AND id = $6 AND number = $7",
                   {static_cast<int>(letter.state), letter.resolved_us, letter.actor, letter.note,
                    LedgerShard(letter.workspace), Param::Blob(id), letter.number}));
  }
  return {};
}

SqlResult<std::vector<DeadLetter>> ReadDeadLetters(sql::Database& database,
                                                   const DeadLetterQuery& query) {
  std::vector<DeadLetter> letters;
  const std::string id = query.before_id.ToBytes();
  std::vector<Param> params;
  std::string condition = query.resolved ? "state >= 1" : "state = 1";
  if (!query.workspace.empty()) {
    condition += " AND shard = $1 AND workspace = $2";
    params = {LedgerShard(query.workspace), query.workspace};
  }
  const auto next = [&params](Param param) {
    params.push_back(param);
    return "$" + std::to_string(params.size());
  };
  if (query.before_us > 0) {
    condition += " AND (at_us, id, number) < (" + next(query.before_us) + ", " +
                 next(Param::Blob(id)) + ", " + next(query.before_number) + ")";
  }
  const std::string sql = SelectWhere(condition) +
                          " ORDER BY at_us DESC, id DESC, number DESC LIMIT " + next(query.limit);
  auto done = database.Transact(sql::TxMode::kRead, [&](Connection& db) {
    letters.clear();
    return db.Query(sql, params, [&](const Row& row) { letters.push_back(ReadDeadLetter(row)); });
  });
  if (!done.ok()) return Fail{std::move(done).error()};
  return letters;
}

SqlResult<std::optional<DeadLetter>> FindDeadLetter(sql::Database& database,
                                                    const std::string& workspace, const Id& id,
                                                    int32_t number) {
  std::optional<DeadLetter> letter;
  const std::string bytes = id.ToBytes();
  auto done = database.Transact(sql::TxMode::kRead, [&](Connection& db) {
    letter.reset();
    return db.Query(SelectWhere("shard = $1 AND workspace = $2 AND id = $3 AND number = $4"),
                    {LedgerShard(workspace), workspace, Param::Blob(bytes), number},
                    [&](const Row& row) { letter = ReadDeadLetter(row); });
  });
  if (!done.ok()) return Fail{std::move(done).error()};
  return letter;
}

SqlResult<int64_t> CountOpenDeadLetters(sql::Database& database) {
  int64_t count = 0;
  // Fast, because the index dead_letter_open contains exactly these rows.
  auto done = database.Transact(sql::TxMode::kRead, [&](Connection& db) {
    return db.Query("SELECT count(*) FROM dead_letter WHERE state = 1", {},
                    [&](const Row& row) { count = row.Int(0); });
  });
  if (!done.ok()) return Fail{std::move(done).error()};
  return count;
}

}  // namespace tollgate::billing
