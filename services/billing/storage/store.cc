#include "services/billing/storage/store.h"

#include <algorithm>

#include "common/base/clock.h"
#include "services/billing/storage/schema.h"

namespace tollgate::billing {
namespace {

using sql::Param;
using sql::Row;
using sql::SqlResult;

std::string Select(std::string_view columns, std::string_view table, std::string_view key) {
  return "SELECT " + std::string(columns) + " FROM " + std::string(table) + " WHERE " +
         std::string(key) + " IN";
}

std::string Insert(std::string_view columns, std::string_view table) {
  return "INSERT INTO " + std::string(table) + " (" + std::string(columns) + ") VALUES";
}

// "ON CONFLICT (key) DO UPDATE SET a = excluded.a, …" of the columns given.
std::string Update(std::string_view key, std::string_view columns) {
  std::string text = "ON CONFLICT (" + std::string(key) + ") DO UPDATE SET ";
  bool first = true;
  while (!columns.empty()) {
    const size_t comma = columns.find(", ");
    const std::string column(columns.substr(0, comma));
    columns = comma == std::string_view::npos ? std::string_view() : columns.substr(comma + 2);
    if (!first) text += ", ";
    first = false;
    text += column + " = excluded." + column;
  }
  return text;
}

template <typename T>
void SortUnique(std::vector<T>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

std::vector<Param> Texts(const std::vector<std::string>& keys) {
  return std::vector<Param>(keys.begin(), keys.end());
}

SqlResult<void> LoadWallets(sql::Connection& db, std::span<const Operation> operations,
                            State& state) {
  std::vector<std::string> names;
  for (const Operation& op : operations) names.push_back(WorkspaceOf(op));
  SortUnique(names);
  static const std::string kHead = Select(kWalletColumns, "wallet", "workspace");
  return db.QueryIn(kHead, Texts(names), "ORDER BY workspace FOR UPDATE", [&](const Row& row) {
    Wallet wallet = ReadWallet(row);
    std::string key = wallet.workspace;
    state.wallets.emplace(std::move(key), std::move(wallet));
  });
}

SqlResult<void> LoadHolds(sql::Connection& db, std::span<const Operation> operations,
                          State& state) {
  std::vector<std::string> ids;
  for (const Operation& op : operations) {
    if (const Id id = RequestIdOf(op); !id.empty()) ids.push_back(id.ToBytes());
  }
  SortUnique(ids);
  std::vector<Param> keys;
  for (const std::string& id : ids) keys.push_back(Param::Blob(id));
  static const std::string kHead = Select(kHoldColumns, "hold", "id");
  return db.QueryIn(kHead, keys, "", [&](const Row& row) {
    Hold hold = ReadHold(row);
    const Id id = hold.id;
    state.holds.emplace(id, std::move(hold));
  });
}

SqlResult<void> LoadMonths(sql::Connection& db, int64_t now_us, State& state) {
  std::vector<std::string> ids;
  for (const auto& [name, wallet] : state.wallets) {
    ids.push_back(MonthKey(name, UtcMonth(now_us)));
  }
  for (const auto& [id, hold] : state.holds) {
    if (!hold.tombstone()) ids.push_back(MonthKey(hold.workspace, hold.month));
  }
  SortUnique(ids);
  static const std::string kHead = Select(kMonthColumns, "cap_month", "id");
  return db.QueryIn(kHead, Texts(ids), "",
                    [&](const Row& row) { state.months.emplace(row.Text(0), ReadMonth(row)); });
}

SqlResult<void> LoadCommands(sql::Connection& db, std::span<const Operation> operations,
                             State& state) {
  std::vector<std::string> ids;
  for (const Operation& op : operations) {
    const std::string_view id = CommandIdOf(op);
    if (!id.empty()) ids.push_back(CommandKey(WorkspaceOf(op), id));
  }
  if (ids.empty()) return {};
  SortUnique(ids);
  static const std::string kHead = Select(kCommandColumns, "command", "id");
  return db.QueryIn(kHead, Texts(ids), "",
                    [&](const Row& row) { state.commands.emplace(row.Text(0), ReadCommand(row)); });
}

SqlResult<void> Load(sql::Connection& db, std::span<const Operation> operations, int64_t now_us,
                     State& state) {
  // Wallets first: their locks keep other replicas from changing any row of these workspaces. The
  // later statements see all that earlier lock holders have committed.
  if (auto done = LoadWallets(db, operations, state); !done.ok()) return done;
  if (auto done = LoadHolds(db, operations, state); !done.ok()) return done;
  if (auto done = LoadMonths(db, now_us, state); !done.ok()) return done;
  return LoadCommands(db, operations, state);
}

SqlResult<void> Write(sql::Connection& db, const Cells& cells, const std::string& head, int columns,
                      std::string_view tail) {
  if (cells.view().empty()) return {};
  auto done = db.ExecuteRows(head, columns, cells.view(), tail);
  if (!done.ok()) return Fail{std::move(done).error()};
  return {};
}

SqlResult<void> SaveHolds(sql::Connection& db, const State& state, const Applied& applied) {
  static const std::string kHead = Insert(kHoldColumns, "hold");
  static const std::string kUpdate =
      Update("id",
             "state, authorized, expires_us, sequence, prompt, cached, cache_write, completion, "
             "reasoning, outcome, cut_by_credit, estimated, engine, charged, charged_granted, "
             "overrun, closed_us");
  Cells fresh(applied.new_holds.size(), kHoldCount);
  for (const Id& id : applied.new_holds) fresh.Add(state.holds.at(id));
  // No ON CONFLICT: a hold that another replica has inserted meanwhile must fail this batch.
  if (auto done = Write(db, fresh, kHead, kHoldCount, ""); !done.ok()) return done;
  Cells changed(applied.changed_holds.size(), kHoldCount);
  for (const Id& id : applied.changed_holds) changed.Add(state.holds.at(id));
  if (auto done = Write(db, changed, kHead, kHoldCount, kUpdate); !done.ok()) return done;

  static const std::string kUsageHead = Insert(kUsageColumns, "usage_record");
  static const std::string kUsageUpdate =
      Update("id",
             "engine, closed_us, prompt, cached, cache_write, completion, reasoning, cost_pico, "
             "charged, overrun, state, outcome, cut_by_credit, estimated");
  Cells usage(applied.recorded_holds.size(), kUsageCount);
  for (const Id& id : applied.recorded_holds) usage.AddUsage(state.holds.at(id));
  return Write(db, usage, kUsageHead, kUsageCount, kUsageUpdate);
}

SqlResult<void> Save(sql::Connection& db, const State& state, const Applied& applied) {
  static const std::string kEntryHead = Insert(kEntryColumns, "entry");
  static const std::string kCommandHead = Insert(kCommandColumns, "command");
  static const std::string kMonthHead = Insert(kMonthColumns, "cap_month");
  static const std::string kMonthUpdate = Update("id", "spent, held");
  static const std::string kWalletHead = Insert(kWalletColumns, "wallet");
  static const std::string kWalletUpdate =
      Update("workspace", "paid, granted, held, open_holds, cap, frozen, sequence, head, clock_us");
  // Entries first: two replicas that create the same wallet at once have no row to lock; the unique
  // sequence of its first entry fails the second one.
  Cells entries(applied.entries.size(), kEntryCount);
  for (const Entry& entry : applied.entries) entries.Add(entry);
  if (auto done = Write(db, entries, kEntryHead, kEntryCount, ""); !done.ok()) return done;
  Cells commands(applied.commands.size(), kCommandCount);
  for (const std::string& key : applied.commands) commands.Add(state.commands.at(key));
  if (auto done = Write(db, commands, kCommandHead, kCommandCount, ""); !done.ok()) return done;
  if (auto done = SaveHolds(db, state, applied); !done.ok()) return done;
  Cells months(applied.months.size(), kMonthCount);
  for (const std::string& key : applied.months) months.Add(state.months.at(key));
  if (auto done = Write(db, months, kMonthHead, kMonthCount, kMonthUpdate); !done.ok()) return done;
  Cells wallets(applied.wallets.size(), kWalletCount);
  for (const std::string& key : applied.wallets) wallets.Add(state.wallets.at(key));
  return Write(db, wallets, kWalletHead, kWalletCount, kWalletUpdate);
}

}  // namespace

SqlResult<void> MigrateLedger(sql::Database& database) {
  return database.Migrate(kSchemaComponent, Migrations());
}

SqlResult<Applied> RunBatch(sql::Connection& connection, std::span<const Operation> operations,
                            int64_t now_us, const Policy& policy) {
  auto tx = sql::Transaction::Begin(connection);
  if (!tx.ok()) return Fail{std::move(tx).error()};
  State state;
  if (auto done = Load(connection, operations, now_us, state); !done.ok()) {
    return Fail{std::move(done).error()};
  }
  Applied applied = Apply(state, operations, now_us, policy);
  if (auto done = Save(connection, state, applied); !done.ok()) {
    return Fail{std::move(done).error()};
  }
  if (auto done = tx->Commit(); !done.ok()) return Fail{std::move(done).error()};
  return applied;
}

}  // namespace tollgate::billing
