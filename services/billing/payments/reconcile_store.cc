// Part of the store: what a reconciliation and a refund ask.
#include "common/base/ledger_shard.h"
#include "common/base/try.h"
#include "services/billing/payments/payment_rows.h"
#include "services/billing/payments/payment_store.h"

namespace tollgate::billing::payments {
namespace {

sql::SqlResult<std::vector<Refund>> ReadRefunds(sql::Connection& db, const std::string& workspace,
                                                const std::string& which,
                                                const std::vector<sql::Param>& params) {
  std::vector<Refund> refunds;
  TRY(db.Query("SELECT " + std::string(kRefundColumns) +
                   " FROM payment_refund WHERE shard = $1 AND workspace = $2" + which +
                   " ORDER BY created_us, id",
               std::span<const sql::Param>(params),
               [&](const sql::Row& row) { refunds.push_back(ReadRefundRow(row)); }));
  return refunds;
}

}  // namespace

sql::SqlResult<std::vector<Refund>> WorkspaceTx::RefundsOf(const std::string& payment) {
  return ReadRefunds(db_, workspace_, " AND payment = $3", {shard_, workspace_, payment});
}

sql::SqlResult<std::vector<Refund>> PaymentStore::RefundsOf(const std::string& workspace) {
  std::vector<Refund> refunds;
  auto done =
      database_.Transact(sql::TxMode::kRead, [&](sql::Connection& db) -> sql::SqlResult<void> {
        TRY(auto read, ReadRefunds(db, workspace, "", {LedgerShard(workspace), workspace}));
        refunds = std::move(read);
        return {};
      });
  if (!done.ok()) return Fail{std::move(done).error()};
  return refunds;
}

sql::SqlResult<std::optional<Dispute>> PaymentStore::FindDispute(const std::string& workspace,
                                                                 const std::string& id) {
  std::optional<Dispute> found;
  auto done = database_.Transact(sql::TxMode::kRead, [&](sql::Connection& db) {
    found.reset();
    return db.Query("SELECT " + std::string(kDisputeColumns) +
                        " FROM payment_dispute WHERE shard = $1 AND workspace = $2 AND id = $3",
                    {LedgerShard(workspace), workspace, id},
                    [&](const sql::Row& row) { found = ReadDisputeRow(row); });
  });
  if (!done.ok()) return Fail{std::move(done).error()};
  return found;
}

sql::SqlResult<void> PaymentStore::CountDisputes(sql::Connection& db, Counts& counts) {
  auto read = db.Query(
      "SELECT count(*), min(CASE WHEN due_us > 0 THEN due_us END) FROM payment_dispute"
      " WHERE state IN (1, 2) AND fraud_warning = 0",
      {}, [&](const sql::Row& row) {
        counts.open_disputes = row.Int(0);
        counts.first_due_us = row.OptionalInt(1).value_or(0);
      });
  if (!read.ok()) return read;
  return db.Query("SELECT count(*) FROM payment_restore", {},
                  [&](const sql::Row& row) { counts.waiting_reloads = row.Int(0); });
}

sql::SqlResult<std::optional<Restored>> PaymentStore::FindRestored() {
  std::optional<Restored> found;
  auto done = database_.Transact(sql::TxMode::kRead, [&](sql::Connection& db) {
    found.reset();
    return db.Query("SELECT restored_us, lost_since_us FROM payment_restore", {},
                    [&](const sql::Row& row) { found = Restored{row.Int(0), row.Int(1)}; });
  });
  if (!done.ok()) return Fail{std::move(done).error()};
  return found;
}

sql::SqlResult<void> PaymentStore::ClearRestored(const Restored& seen) {
  return database_.Transact(sql::TxMode::kWrite, [&](sql::Connection& db) -> sql::SqlResult<void> {
    TRY(db.Execute("DELETE FROM payment_restore WHERE restored_us = $1", {seen.restored_us}));
    return {};
  });
}

sql::SqlResult<std::vector<std::string>> PaymentStore::CutLogs() {
  std::vector<std::string> cut;
  auto done = database_.Transact(sql::TxMode::kRead, [&](sql::Connection& db) {
    cut.clear();
    return db.Query(
        "SELECT h.workspace FROM payment_head h LEFT JOIN payment_event e ON e.shard = h.shard AND"
        " e.workspace = h.workspace AND e.sequence = h.sequence"
        " WHERE (h.sequence > 0 AND (e.hash IS NULL OR e.hash <> h.head)) OR EXISTS (SELECT 1 FROM"
        " payment_event n WHERE n.shard = h.shard AND n.workspace = h.workspace AND"
        " n.sequence > h.sequence)"
        " UNION SELECT p.workspace FROM payment p WHERE NOT EXISTS (SELECT 1 FROM payment_head h"
        " WHERE h.shard = p.shard AND h.workspace = p.workspace) ORDER BY 1",
        {}, [&](const sql::Row& row) { cut.push_back(row.Text(0)); });
  });
  if (!done.ok()) return Fail{std::move(done).error()};
  return cut;
}

}  // namespace tollgate::billing::payments
