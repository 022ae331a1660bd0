#include "services/billing/storage/store.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "common/audit/log.h"
#include "common/base/clock.h"
#include "common/base/ledger_shard.h"
#include "common/base/sort_unique.h"
#include "common/base/try.h"
#include "services/billing/domain/dead_letter.h"
#include "services/billing/storage/audit_outbox.h"
#include "services/billing/storage/credit_by_hand.h"
#include "services/billing/storage/dead_letters.h"
#include "services/billing/storage/distribute.h"
#include "services/billing/storage/idempotency_keys.h"
#include "services/billing/storage/key_months.h"
#include "services/billing/storage/leases.h"
#include "services/billing/storage/row_texts.h"
#include "services/billing/storage/schema.h"
#include "services/billing/storage/verification_table.h"

namespace tollgate::billing {
namespace {

using sql::Param;
using sql::Row;
using sql::SqlResult;

using KeyColumn = sql::Connection::KeyColumn;
constexpr KeyColumn kShard = {"shard", Param::Kind::kInt};
constexpr KeyColumn kWorkspace = {"workspace", Param::Kind::kText};
constexpr KeyColumn kMonth = {"month", Param::Kind::kInt};

SqlResult<void> LoadWallets(sql::Connection& db, std::span<const Operation> operations,
                            State& state) {
  std::vector<std::pair<int32_t, std::string_view>> names;
  for (const Operation& op : operations) {
    names.emplace_back(LedgerShard(WorkspaceOf(op)), WorkspaceOf(op));
  }
  SortUnique(names);
  std::vector<Param> keys;
  int32_t kept = -1;
  for (const auto& [shard, name] : names) {
    keys.insert(keys.end(), {shard, name});
    if (std::exchange(kept, shard) == shard) continue;
    TRY(KeepInPlace(db, shard));
  }
  static const std::string kHead = Select(kWalletColumns, "wallet");
  static constexpr KeyColumn kKey[] = {kShard, kWorkspace};
  return db.QueryKeys(kHead, kKey, keys, "ORDER BY shard, workspace FOR UPDATE",
                      [&state](const Row& row) {
                        Wallet wallet = ReadWallet(row);
                        std::string key = wallet.workspace;
                        state.wallets.emplace(std::move(key), std::move(wallet));
                      });
}

// keys: shard and id of each hold.
SqlResult<void> LoadHolds(sql::Connection& db, std::span<const Param> keys, State& state) {
  static const std::string kHead = Select(kHoldColumns, "hold");
  static constexpr KeyColumn kKey[] = {kShard, {"id", Param::Kind::kBlob}};
  return db.QueryKeys(kHead, kKey, keys, "", [&state](const Row& row) {
    Hold hold = ReadHold(row);
    const Id id = hold.id;
    state.holds.emplace(id, std::move(hold));
  });
}

SqlResult<void> LoadHolds(sql::Connection& db, std::span<const Operation> operations,
                          State& state) {
  std::vector<std::pair<int32_t, std::string>> ids;
  for (const Operation& op : operations) {
    const Id id = RequestIdOf(op);
    if (!id.empty()) ids.emplace_back(LedgerShard(WorkspaceOf(op)), id.ToBytes());
  }
  SortUnique(ids);
  std::vector<Param> keys;
  for (const auto& [shard, id] : ids) keys.insert(keys.end(), {shard, Param::Blob(id)});
  return LoadHolds(db, keys, state);
}

// Loads the months that operations on these wallets, holds and leases may change.
SqlResult<void> LoadMonths(sql::Connection& db, std::span<const LeaseName> leases, int64_t now_us,
                           State& state) {
  std::vector<std::pair<std::string_view, int32_t>> months;
  for (const auto& [name, wallet] : state.wallets) {
    months.emplace_back(name, UtcMonth(now_us));
  }
  for (const auto& [id, hold] : state.holds) {
    if (!hold.tombstone()) months.emplace_back(hold.workspace, hold.month);
  }
  for (const LeaseName& lease : leases) months.emplace_back(lease.workspace, lease.month);
  SortUnique(months);
  std::vector<Param> keys;
  for (const auto& [name, month] : months) {
    keys.insert(keys.end(), {LedgerShard(name), name, month});
  }
  static const std::string kHead = Select(kMonthColumns, "cap_month");
  static constexpr KeyColumn kKey[] = {kShard, kWorkspace, kMonth};
  return db.QueryKeys(kHead, kKey, keys, "", [&state](const Row& row) {
    Month month = ReadMonth(row);
    std::string key = MonthKey(month.workspace, month.month);
    state.months.emplace(std::move(key), std::move(month));
  });
}

SqlResult<void> LoadCommands(sql::Connection& db, std::span<const Operation> operations,
                             State& state) {
  std::vector<std::pair<std::string_view, std::string>> ids;
  for (const Operation& op : operations) {
    const std::string_view id = CommandIdOf(op);
    if (!id.empty()) ids.emplace_back(WorkspaceOf(op), id);
    if (std::holds_alternative<ResolveDeadLetter>(op)) {
      ids.emplace_back(WorkspaceOf(op), AdjustmentIdOf(RequestIdOf(op)));
    }
  }
  if (ids.empty()) return {};
  SortUnique(ids);
  std::vector<Param> keys;
  for (const auto& [workspace, id] : ids) {
    keys.insert(keys.end(), {LedgerShard(workspace), workspace, id});
  }
  static const std::string kHead = Select(kCommandColumns, "command");
  static constexpr KeyColumn kKey[] = {kShard, kWorkspace, {"id", Param::Kind::kText}};
  return db.QueryKeys(kHead, kKey, keys, "", [&state](const Row& row) {
    Command command = ReadCommand(row);
    std::string key = CommandKey(command.workspace, command.command_id);
    state.commands.emplace(std::move(key), std::move(command));
  });
}

// Begins the transaction. Takes two round trips, or more if a request needs more rows.
SqlResult<void> Load(sql::Connection& db, std::span<const Operation> operations, int64_t now_us,
                     State& state) {
  // Wallets come first: their locks keep other replicas from changing any row of these workspaces.
  // The later statements see everything that earlier lock holders have committed.
  TRY(LoadWallets(db, operations, state));
  TRY(LoadHolds(db, operations, state));
  const std::vector<LeaseName> leases = LeasesOf(operations, now_us);
  TRY(LoadLeases(db, leases, state));
  TRY(LoadDeadLetters(db, operations, state));
  TRY(LoadCommands(db, operations, state));
  TRY(db.Flush());
  // Which other rows are needed depends on the wallets and holds.
  const std::vector<WantedKeyMonth> beginning = BeginningKeyMonths(operations, now_us, state);
  db.Pipeline();
  TRY(LoadMonths(db, leases, now_us, state));
  TRY(LoadKeyMonths(db, operations, beginning, now_us, state));
  TRY(db.Flush());
  TRY(StartKeyMonths(db, beginning, state));
  return LoadIdempotencyKeys(
      db, operations, [&](std::span<const Param> keys) { return LoadHolds(db, keys, state); },
      state);
}

SqlResult<void> Write(sql::Connection& db, const Cells& cells, const std::string& head, int columns,
                      std::string_view tail) {
  if (cells.view().empty()) return {};
  TRY(db.ExecuteRows(head, columns, cells.view(), tail));
  return {};
}

SqlResult<void> SaveHolds(sql::Connection& db, const State& state, const Applied& applied) {
  static const std::string kHead = Insert(kHoldColumns, "hold");
  static const std::string kUpdate =
      Update("shard, id",
             "state, model, input_pico, output_pico, price_version, prompt_bound, output_bound, "
             "candidate, attempt, authorized, expires_us, sequence, prompt, cached, cache_write, "
             "completion, reasoning, outcome, cut_by_credit, estimated, engine, charged, "
             "charged_granted, overrun, closed_us, first_token_us");
  Cells fresh(applied.new_holds.size(), kHoldCount);
  for (const Id& id : applied.new_holds) fresh.Add(state.holds.at(id));
  // No ON CONFLICT: a hold that another replica has inserted meanwhile must fail this batch.
  TRY(Write(db, fresh, kHead, kHoldCount, ""));
  Cells changed(applied.changed_holds.size(), kHoldCount);
  for (const Id& id : applied.changed_holds) changed.Add(state.holds.at(id));
  TRY(Write(db, changed, kHead, kHoldCount, kUpdate));

  static const std::string kUsageHead = Insert(kUsageColumns, "usage_record");
  static const std::string kUsageUpdate = Update(
      "shard, id",
      "engine, closed_us, first_token_us, prompt, cached, cache_write, completion, reasoning, "
      "cost_pico, charged, overrun, state, outcome, cut_by_credit, estimated");
  Cells usage(applied.recorded_holds.size(), kUsageCount);
  for (const Id& id : applied.recorded_holds) usage.AddUsage(state.holds.at(id));
  return Write(db, usage, kUsageHead, kUsageCount, kUsageUpdate);
}

// Adds the changes to the roll-ups, one row per key, model and period (decision 53).
SqlResult<void> SaveRollUps(sql::Connection& db, const std::vector<UsageChange>& changes) {
  if (changes.empty()) return {};
  struct Table {
    std::string head, add_up;
  };
  const auto table = [](const std::string& name) {
    return Table{Insert(kRollUpColumns, name),
                 AddUp(name, "shard, workspace, key_id, model, period",
                       "requests, free_requests, prompt, cached, cache_write, completion, "
                       "reasoning, charged, overrun")};
  };
  static const Table kQuarters = table("usage_quarter"), kDays = table("usage_day");
  const auto save = [&](const Table& table, auto period_of) {
    std::map<std::tuple<std::string_view, std::string_view, std::string_view, int64_t>, UsageChange>
        rows;
    for (const UsageChange& change : changes) {
      const int64_t period = period_of(change.admitted_us);
      auto [row, fresh] =
          rows.try_emplace({change.workspace, change.key_id, change.model, period}, change);
      if (!fresh) row->second += change;
    }
    Cells cells(rows.size(), kRollUpCount);
    for (const auto& [key, row] : rows) cells.AddRollUp(row, std::get<3>(key));
    return Write(db, cells, table.head, kRollUpCount, table.add_up);
  };
  TRY(save(kQuarters, [](int64_t at_us) { return at_us / kQuarterUs; }));
  return save(kDays, [](int64_t at_us) { return int64_t{UtcDay(at_us)}; });
}

SqlResult<void> SaveWallets(sql::Connection& db, const State& state, const Applied& applied) {
  static const std::string kHead = Insert(kWalletColumns, "wallet");
  static const std::string kUpdate =
      Update("shard, workspace",
             "paid, granted, held, receivable, open_holds, cap, frozen, sequence, head, "
             "clock_us, leased, leases");
  Cells fresh(applied.new_wallets.size(), kWalletCount);
  Cells changed(applied.wallets.size(), kWalletCount);
  for (const std::string& key : applied.wallets) {
    const bool is_new =
        std::binary_search(applied.new_wallets.begin(), applied.new_wallets.end(), key);
    (is_new ? fresh : changed).Add(state.wallets.at(key));
  }
  // No ON CONFLICT: if two replicas create the same wallet at once there is no row to lock, so the
  // primary key must fail the second one.
  TRY(Write(db, fresh, kHead, kWalletCount, ""));
  return Write(db, changed, kHead, kWalletCount, kUpdate);
}

SqlResult<void> SaveCommands(sql::Connection& db, const State& state, const Applied& applied) {
  static const std::string kHead = Insert(kCommandColumns, "command");
  static const std::string kUpdate =
      Update("shard, workspace, id", "state, decided_by, decided_us");
  Cells fresh(applied.commands.size(), kCommandCount);
  for (const std::string& key : applied.commands) fresh.Add(state.commands.at(key));
  TRY(Write(db, fresh, kHead, kCommandCount, ""));
  Cells decided(applied.decided_commands.size(), kCommandCount);
  for (const std::string& key : applied.decided_commands) {
    const bool is_new =
        std::find(applied.commands.begin(), applied.commands.end(), key) != applied.commands.end();
    if (!is_new) decided.Add(state.commands.at(key));
  }
  return Write(db, decided, kHead, kCommandCount, kUpdate);
}

SqlResult<void> Save(sql::Connection& db, const State& state, const Applied& applied) {
  static const std::string kEntryHead = Insert(kEntryColumns, "entry");
  static const std::string kMonthHead = Insert(kMonthColumns, "cap_month");
  static const std::string kMonthUpdate = Update("shard, workspace, month", "spent, held");
  static const std::string kKeyMonthHead = Insert(kKeyMonthColumns, "key_month");
  static const std::string kKeyMonthUpdate =
      Update("shard, workspace, key_id, month", "spent, held");
  TRY(SaveWallets(db, state, applied));
  Cells entries(applied.entries.size(), kEntryCount);
  for (const Entry& entry : applied.entries) entries.Add(entry);
  TRY(Write(db, entries, kEntryHead, kEntryCount, ""));
  TRY(SaveCommands(db, state, applied));
  TRY(SaveDeadLetters(db, state, applied));
  TRY(SaveHolds(db, state, applied));
  TRY(SaveIdempotencyKeys(db, state, applied));
  TRY(SaveLeases(db, state, applied));
  TRY(SaveRollUps(db, applied.usage_changes));
  Cells months(applied.months.size(), kMonthCount);
  for (const std::string& key : applied.months) months.Add(state.months.at(key));
  TRY(Write(db, months, kMonthHead, kMonthCount, kMonthUpdate));
  Cells key_months(applied.key_months.size(), kKeyMonthCount);
  for (const std::string& key : applied.key_months) key_months.Add(state.key_months.at(key));
  return Write(db, key_months, kKeyMonthHead, kKeyMonthCount, kKeyMonthUpdate);
}

}  // namespace

SqlResult<void> MigrateLedger(sql::Database& database) {
  auto done = audit::Migrate(database);
  if (done.ok()) done = database.Migrate(kSchemaComponent, Migrations());
  if (done.ok()) done = MigrateCreditByHand(database);
  if (!done.ok()) return done;
  return database.Migrate(kVerificationsComponent, VerificationMigrations());
}

SqlResult<Applied> RunBatch(sql::Connection& connection, std::span<const Operation> operations,
                            int64_t now_us, const Policy& policy,
                            const std::function<SqlResult<void>(State&)>& check) {
  connection.Pipeline();
  TRY(auto tx, sql::Transaction::Begin(connection));
  State state;
  TRY(Load(connection, operations, now_us, state));
  if (check) {
    TRY(check(state));
  }
  Applied applied = Apply(state, operations, now_us, policy);
  TRY(NumberDeadLetters(connection, applied));
  connection.Pipeline();
  TRY(Save(connection, state, applied));
  TRY(WriteAudit(connection, applied.audit_notes));
  TRY(tx.Commit());
  return applied;
}

}  // namespace tollgate::billing
