#include "services/billing/payments/payment_store.h"

#include "common/base/ledger_shard.h"
#include "common/base/text.h"
#include "common/base/try.h"
#include "common/money/money.h"
#include "services/billing/payments/payment_rows.h"
#include "services/billing/payments/payment_schema.h"

namespace tollgate::billing::payments {
namespace {

using sql::Connection;
using sql::Param;
using sql::Row;
using sql::SqlResult;

constexpr size_t kMaxReason = 512;

// "INSERT … VALUES ($1, …) ON CONFLICT (key) DO UPDATE SET …" for all columns after the key.
std::string Upsert(std::string_view table, std::string_view columns, std::string_view key) {
  std::vector<std::string> names{"shard"};
  std::string name;
  for (const char c : columns) {
    if (c == ',') {
      names.push_back(std::move(name));
      name.clear();
    } else if (c != ' ') {
      name += c;
    }
  }
  names.push_back(std::move(name));
  std::string values, updates;
  const std::string keys = ", " + std::string(key) + ",";
  for (size_t i = 0; i < names.size(); ++i) {
    values += (i > 0 ? ", $" : "$") + std::to_string(i + 1);
    if (keys.find(", " + names[i] + ",") != std::string::npos) continue;
    updates += (updates.empty() ? "" : ", ") + names[i] + " = excluded." + names[i];
  }
  return "INSERT INTO " + std::string(table) + " (shard, " + std::string(columns) + ") VALUES (" +
         values + ") ON CONFLICT (" + std::string(key) + ") DO UPDATE SET " + updates;
}

SqlResult<void> Write(Connection& db, const std::string& text, const std::vector<Param>& cells) {
  TRY(db.Execute(text, std::span<const Param>(cells)));
  return {};
}

template <typename T, typename Read>
SqlResult<std::optional<T>> One(Connection& db, const std::string& text,
                                const std::vector<Param>& params, Read read) {
  std::optional<T> found;
  TRY(db.Query(text, params, [&](const Row& row) { found = read(row); }));
  return found;
}

template <typename T, typename Read>
SqlResult<std::vector<T>> Many(sql::Database& database, const std::string& text,
                               const std::vector<Param>& params, Read read) {
  std::vector<T> found;
  auto done = database.Transact(sql::TxMode::kRead, [&](Connection& db) {
    found.clear();
    return db.Query(text, params, [&](const Row& row) { found.push_back(read(row)); });
  });
  if (!done.ok()) return Fail{std::move(done).error()};
  return found;
}

template <typename T>
SqlResult<std::optional<T>> First(SqlResult<std::vector<T>> found) {
  if (!found.ok()) return Fail{std::move(found).error()};
  if (found->empty()) return std::optional<T>();
  return std::optional<T>(std::move(found->front()));
}

const std::string kSelectPayment = "SELECT " + std::string(kPaymentColumns) + " FROM payment ";
const std::string kSelectReload = "SELECT " + std::string(kReloadColumns) + " FROM auto_reload ";
const std::string kSelectRefund = "SELECT " + std::string(kRefundColumns) + " FROM payment_refund ";
const std::string kSelectMethod = "SELECT " + std::string(kMethodColumns) + " FROM payment_method ";
constexpr char kById[] = "WHERE shard = $1 AND workspace = $2 AND id = $3";
constexpr char kOfWorkspace[] = "WHERE shard = $1 AND workspace = $2";
const std::string kSelectSaved = kSelectMethod + kOfWorkspace +
                                 " AND deleted_us = 0 ORDER BY chosen_us DESC, created_us DESC, id";

}  // namespace

WorkspaceTx::WorkspaceTx(Connection& db, std::string workspace, int64_t now_us)
    : db_(db), workspace_(std::move(workspace)), shard_(LedgerShard(workspace_)), now_us_(now_us) {}

SqlResult<void> WorkspaceTx::Lock() {
  // Writes first, so that both SQLite and PostgreSQL lock the row from here on.
  const std::string zero(32, '\0');
  TRY(db_.Execute(
      "INSERT INTO payment_head (shard, workspace, sequence, head) VALUES ($1, $2, 0, $3)"
      " ON CONFLICT (shard, workspace) DO NOTHING",
      {shard_, workspace_, Param::Blob(zero)}));
  return db_.Query(
      "SELECT sequence, head FROM payment_head WHERE shard = $1 AND workspace = $2 FOR UPDATE",
      {shard_, workspace_}, [&](const Row& row) {
        sequence_ = row.Int(0);
        head_ = row.Text(1);
      });
}

SqlResult<std::optional<Payment>> WorkspaceTx::FindPayment(const std::string& id) {
  return One<Payment>(db_, kSelectPayment + kById, {shard_, workspace_, id}, ReadPayment);
}

SqlResult<void> WorkspaceTx::Put(const Payment& payment) {
  static const std::string kText = Upsert("payment", kPaymentColumns, "shard, workspace, id");
  return Write(db_, kText, Cells(payment));
}

SqlResult<int64_t> WorkspaceTx::PaidNotCredited() {
  int64_t sum = 0;
  // Such a payment is always due, so the query uses the small index.
  TRY(db_.Query(
      "SELECT CAST(sum(amount) AS BIGINT) FROM payment WHERE check_us > 0 AND shard = $1 AND"
      " workspace = $2 AND state = 4 AND credited = 0",
      {shard_, workspace_}, [&](const Row& row) { sum = row.Int(0); }));
  return sum;
}

SqlResult<std::optional<AutoReload>> WorkspaceTx::FindReload() {
  return One<AutoReload>(db_, kSelectReload + kOfWorkspace, {shard_, workspace_}, ReadReload);
}

SqlResult<void> WorkspaceTx::Put(AutoReload reload) {
  static const std::string kText = Upsert("auto_reload", kReloadColumns, "shard, workspace");
  ++reload.version;
  return Write(db_, kText, Cells(reload));
}

SqlResult<std::optional<Refund>> WorkspaceTx::FindRefund(const std::string& id) {
  return One<Refund>(db_, kSelectRefund + kById, {shard_, workspace_, id}, ReadRefundRow);
}

SqlResult<void> WorkspaceTx::Put(const Refund& refund) {
  static const std::string kText = Upsert("payment_refund", kRefundColumns, "shard, workspace, id");
  return Write(db_, kText, Cells(refund));
}

SqlResult<std::string> WorkspaceTx::FindCustomer(const std::string& provider) {
  std::string customer;
  TRY(
      db_.Query("SELECT customer FROM provider_customer WHERE shard = $1 AND workspace = $2 AND"
                " provider = $3",
                {shard_, workspace_, provider}, [&](const Row& row) { customer = row.Text(0); }));
  return customer;
}

SqlResult<void> WorkspaceTx::PutCustomer(const std::string& provider, const std::string& customer) {
  TRY(db_.Execute(
      "INSERT INTO provider_customer (shard, workspace, provider, customer) VALUES ($1, $2, $3, $4)"
      " ON CONFLICT (shard, workspace, provider) DO NOTHING",
      {shard_, workspace_, provider, customer}));
  return {};
}

SqlResult<void> WorkspaceTx::Put(const PaymentMethod& method) {
  static const std::string kText = Upsert("payment_method", kMethodColumns, "shard, workspace, id");
  return Write(db_, kText, Cells(method));
}

SqlResult<bool> WorkspaceTx::RemoveMethod(const std::string& id) {
  TRY(auto done, db_.Execute("UPDATE payment_method SET deleted_us = $1 WHERE shard = $2 AND "
                             "workspace = $3 AND id = $4"
                             " AND deleted_us = 0",
                             {now_us_, shard_, workspace_, id}));
  return done > 0;
}

SqlResult<bool> WorkspaceTx::KnowsMethod(const std::string& id) {
  TRY(auto found,
      One<PaymentMethod>(db_, kSelectMethod + kById, {shard_, workspace_, id}, ReadMethodRow));
  return found.has_value();
}

SqlResult<std::optional<Dispute>> WorkspaceTx::FindDispute(const std::string& id) {
  return One<Dispute>(db_,
                      "SELECT " + std::string(kDisputeColumns) + " FROM payment_dispute " + kById,
                      {shard_, workspace_, id}, ReadDisputeRow);
}

SqlResult<void> WorkspaceTx::Put(const Dispute& dispute) {
  static const std::string kText =
      Upsert("payment_dispute", kDisputeColumns, "shard, workspace, id");
  return Write(db_, kText, Cells(dispute));
}

SqlResult<bool> WorkspaceTx::IsDisputed(const std::string& payment) {
  int64_t count = 0;
  TRY(db_.Query(
      "SELECT count(*) FROM payment_dispute WHERE shard = $1 AND workspace = $2 AND payment = $3"
      " AND state IN (2, 3)",
      {shard_, workspace_, payment}, [&](const Row& row) { count = row.Int(0); }));
  return count > 0;
}

SqlResult<std::vector<PaymentMethod>> WorkspaceTx::Methods() {
  std::vector<PaymentMethod> methods;
  TRY(db_.Query(kSelectSaved, {shard_, workspace_},
                [&](const Row& row) { methods.push_back(ReadMethodRow(row)); }));
  return methods;
}

SqlResult<void> WorkspaceTx::Log(std::string subject, std::string_view from, std::string_view to,
                                 int64_t amount_nano_usd, std::string_view actor,
                                 std::string_view reason) {
  PaymentEvent event;
  event.workspace = workspace_;
  event.sequence = ++sequence_;
  event.at_us = now_us_;
  event.subject = std::move(subject);
  event.from = from;
  event.to = to;
  event.amount_nano_usd = amount_nano_usd;
  event.actor = ToValidUtf8(actor, kMaxReason);
  event.reason = ToValidUtf8(reason, kMaxReason);
  head_ = EventHash(head_, event);
  TRY(db_.Execute(
      "INSERT INTO payment_event (shard, workspace, sequence, at_us, subject, from_state, to_state,"
      " amount, actor, reason, hash) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
      {shard_, workspace_, event.sequence, event.at_us, event.subject, event.from, event.to,
       event.amount_nano_usd, event.actor, event.reason, Param::Blob(head_)}));
  TRY(db_.Execute(
      "UPDATE payment_head SET sequence = $1, head = $2 WHERE shard = $3 AND workspace = $4",
      {sequence_, Param::Blob(head_), shard_, workspace_}));
  return {};
}

SqlResult<void> WorkspaceTx::LogCall(const audit::Origin& by, std::string action,
                                     std::string subject, std::string_view from,
                                     std::string_view to, int64_t amount_nano_usd,
                                     std::string_view reason) {
  std::string detail(from.empty() || from == to ? "" : std::string(from) + " to ");
  detail += to;
  if (amount_nano_usd != 0) detail += ", " + NanoToDecimalUsd(amount_nano_usd) + " USD";
  if (!reason.empty()) detail += ": " + ToValidUtf8(reason, kMaxReason);
  audit::Record record =
      audit::RecordOf(by, now_us_, std::move(action), workspace_, subject, std::move(detail));
  TRY(Log(std::move(subject), from, to, amount_nano_usd, by.actor, reason));
  return audit::Append(db_, audit::kEntries, std::move(record));
}

SqlResult<SeenRequest> WorkspaceTx::See(const audit::Origin& by, std::string_view content) {
  return SeeRequest(db_, by, workspace_ + "\n" + std::string(content), now_us_);
}

SqlResult<void> PaymentStore::Migrate() {
  TRY(audit::Migrate(database_));
  TRY(MigrateRequestIds(database_));
  TRY(MigrateCreditByHand(database_));
  return database_.Migrate(kComponent, PaymentMigrations());
}

SqlResult<void> PaymentStore::Run(const std::string& workspace, int64_t now_us,
                                  const Change& change) {
  std::vector<std::function<void()>> after_commit;
  TRY(database_.Transact(sql::TxMode::kWrite, [&](Connection& db) -> SqlResult<void> {
    WorkspaceTx tx(db, workspace, now_us);
    TRY(tx.Lock());
    TRY(change(tx));
    after_commit = tx.after_commit();
    return {};
  }));
  for (const auto& then : after_commit) then();
  return {};
}

SqlResult<void> PaymentStore::Run(const Call& call, const std::string& workspace, int64_t now_us,
                                  const Change& change) {
  return Run(workspace, now_us, [&](WorkspaceTx& tx) -> SqlResult<void> {
    call.failure->reset();
    TRY(auto seen, tx.See(call.by, call.content));
    if (seen != SeenRequest::kOther) return change(tx);
    *call.failure = admin::RequestIdReused().error;
    return {};
  });
}

SqlResult<std::optional<Payment>> PaymentStore::FindPayment(const std::string& workspace,
                                                            const std::string& id) {
  return First(Many<Payment>(database_, kSelectPayment + kById,
                             {LedgerShard(workspace), workspace, id}, ReadPayment));
}

SqlResult<std::optional<Payment>> PaymentStore::FindByProviderId(const std::string& provider_id) {
  return First(Many<Payment>(database_,
                             kSelectPayment + "WHERE provider_id = $1 AND provider_id <> ''",
                             {provider_id}, ReadPayment));
}

SqlResult<std::vector<Payment>> PaymentStore::ListPayments(const std::string& workspace, int limit,
                                                           const Position& before) {
  std::vector<sql::Param> params = {before.created_us, before.id};
  std::string text = kSelectPayment + "WHERE (created_us < $1 OR (created_us = $1 AND id < $2))";
  const auto next = [&](sql::Param value) {
    params.push_back(value);
    return "$" + std::to_string(params.size());
  };
  if (!workspace.empty()) {
    text += " AND shard = " + next(LedgerShard(workspace)) + " AND workspace = " + next(workspace);
  }
  if (before.state) text += " AND state = " + next(static_cast<int>(*before.state));
  if (before.reload) text += " AND reload = " + next(*before.reload ? 1 : 0);
  text += " ORDER BY created_us DESC, id DESC LIMIT " + next(limit);
  return Many<Payment>(database_, text, params, ReadPayment);
}

SqlResult<std::vector<Payment>> PaymentStore::PaymentsBetween(int64_t start_us, int64_t end_us) {
  return Many<Payment>(
      database_,
      kSelectPayment + "WHERE created_us >= $1 AND created_us < $2 ORDER BY created_us, id",
      {start_us, end_us}, ReadPayment);
}

SqlResult<std::vector<Payment>> PaymentStore::DuePayments(int64_t now_us, int limit) {
  return Many<Payment>(
      database_,
      kSelectPayment + "WHERE check_us > 0 AND check_us <= $1 ORDER BY check_us LIMIT $2",
      {now_us, limit}, ReadPayment);
}

SqlResult<std::vector<Refund>> PaymentStore::DueRefunds(int64_t now_us, int limit) {
  return Many<Refund>(
      database_, kSelectRefund + "WHERE check_us > 0 AND check_us <= $1 ORDER BY check_us LIMIT $2",
      {now_us, limit}, ReadRefundRow);
}

SqlResult<std::optional<Refund>> PaymentStore::FindRefund(const std::string& workspace,
                                                          const std::string& id) {
  return First(Many<Refund>(database_, kSelectRefund + kById,
                            {LedgerShard(workspace), workspace, id}, ReadRefundRow));
}

SqlResult<std::optional<AutoReload>> PaymentStore::FindReload(const std::string& workspace) {
  return First(Many<AutoReload>(database_, kSelectReload + kOfWorkspace,
                                {LedgerShard(workspace), workspace}, ReadReload));
}

SqlResult<std::vector<AutoReload>> PaymentStore::TriggerableReloads(int64_t now_us) {
  return Many<AutoReload>(database_,
                          kSelectReload +
                              "WHERE enabled = 1 AND (state = 1 OR (state IN (5, 6) AND"
                              " next_us > 0 AND next_us <= $1)) ORDER BY workspace",
                          {now_us}, ReadReload);
}

SqlResult<std::vector<PaymentMethod>> PaymentStore::Methods(const std::string& workspace) {
  return Many<PaymentMethod>(database_, kSelectSaved, {LedgerShard(workspace), workspace},
                             ReadMethodRow);
}

SqlResult<std::vector<PaymentEvent>> PaymentStore::Events(const std::string& workspace) {
  return Many<PaymentEvent>(
      database_,
      "SELECT workspace, sequence, at_us, subject, from_state, to_state, amount, actor, reason,"
      " hash FROM payment_event WHERE shard = $1 AND workspace = $2 ORDER BY sequence",
      {LedgerShard(workspace), workspace}, [](const Row& row) {
        return PaymentEvent{row.Text(0), row.Int(1), row.Int(2),  row.Text(3), row.Text(4),
                            row.Text(5), row.Int(6), row.Text(7), row.Text(8), row.Text(9)};
      });
}

SqlResult<PaymentStore::Counts> PaymentStore::Count() {
  Counts counts;
  auto done = database_.Transact(sql::TxMode::kRead, [&](Connection& db) -> SqlResult<void> {
    counts = {};
    // Payments that wait for an answer are all due, so the index contains them.
    auto read =
        db.Query("SELECT count(*), min(created_us) FROM payment WHERE check_us > 0 AND state = 7",
                 {}, [&](const Row& row) {
                   counts.unknown_payments = row.Int(0);
                   counts.oldest_unknown_us = row.Int(1);
                 });
    if (!read.ok()) return read;
    read = db.Query(
        "SELECT count(*), CAST(sum(CASE WHEN state = 6 THEN 1 ELSE 0 END) AS BIGINT)"
        " FROM auto_reload WHERE enabled = 1",
        {}, [&](const Row& row) {
          counts.enabled_reloads = row.Int(0);
          counts.paused_reloads = row.Int(1);
        });
    if (!read.ok()) return read;
    read = db.Query("SELECT count(*) FROM provider_event WHERE check_us > 0", {},
                    [&](const Row& row) { counts.due_events = row.Int(0); });
    if (!read.ok()) return read;
    read = db.Query("SELECT count(*) FROM payment_refund WHERE state = 5", {},
                    [&](const Row& row) { counts.failed_refunds = row.Int(0); });
    if (!read.ok()) return read;
    return CountDisputes(db, counts);
  });
  if (!done.ok()) return Fail{std::move(done).error()};
  return counts;
}

std::string CheckEvents(const std::vector<PaymentEvent>& events) {
  std::string head(32, '\0');
  int64_t sequence = 0;
  for (const PaymentEvent& event : events) {
    if (event.sequence != ++sequence) return "event " + std::to_string(sequence) + " is missing";
    head = EventHash(head, event);
    if (head != event.hash) return "event " + std::to_string(sequence) + " was changed";
  }
  return "";
}

}  // namespace tollgate::billing::payments
