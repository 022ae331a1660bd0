// The events of webhooks in the database.
#include "common/base/ledger_shard.h"
#include "common/base/try.h"
#include "services/billing/payments/payment_rows.h"
#include "services/billing/payments/payment_store.h"

namespace tollgate::billing::payments {

using sql::Connection;
using sql::Param;
using sql::SqlResult;

SqlResult<void> PaymentStore::Log(audit::Record record) {
  return database_.Transact(sql::TxMode::kWrite, [&](Connection& db) {
    return audit::Append(db, audit::kEntries, record);
  });
}

SqlResult<bool> PaymentStore::AddEvent(const ProviderEvent& event, const audit::Record* record) {
  int64_t added = 0;
  auto done = database_.Transact(sql::TxMode::kWrite, [&](Connection& db) -> SqlResult<void> {
    const std::vector<Param> cells = Cells(event);
    TRY(auto made, db.Execute("INSERT INTO provider_event (shard, " + std::string(kEventColumns) +
                                  ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)"
                                  " ON CONFLICT (shard, workspace, id) DO NOTHING",
                              std::span<const Param>(cells)));
    added = made;
    if (added == 0 || record == nullptr) return {};
    return audit::Append(db, audit::kEntries, *record);
  });
  if (!done.ok()) return Fail{std::move(done).error()};
  return added > 0;
}

SqlResult<std::vector<ProviderEvent>> PaymentStore::DueEvents(int64_t now_us, int limit) {
  std::vector<ProviderEvent> due;
  auto done = database_.Transact(sql::TxMode::kRead, [&](Connection& db) {
    due.clear();
    return db.Query("SELECT " + std::string(kEventColumns) +
                        " FROM provider_event WHERE check_us > 0 AND check_us <= $1"
                        " ORDER BY check_us LIMIT $2",
                    {now_us, limit},
                    [&](const sql::Row& row) { due.push_back(ReadEventRow(row)); });
  });
  if (!done.ok()) return Fail{std::move(done).error()};
  return due;
}

SqlResult<bool> PaymentStore::ClaimEvent(const ProviderEvent& seen, int64_t until_us) {
  int64_t claimed = 0;
  auto done = database_.Transact(sql::TxMode::kWrite, [&](Connection& db) -> SqlResult<void> {
    TRY(auto changed, db.Execute("UPDATE provider_event SET check_us = $1 WHERE shard = $2 AND "
                                 "workspace = $3 AND id = $4"
                                 " AND check_us = $5 AND check_us > 0",
                                 {until_us, LedgerShard(seen.workspace), seen.workspace, seen.id,
                                  seen.check_us}));
    claimed = changed;
    return {};
  });
  if (!done.ok()) return Fail{std::move(done).error()};
  return claimed > 0;
}

SqlResult<void> PaymentStore::FinishEvent(const ProviderEvent& event, int64_t claimed_until_us) {
  return database_.Transact(sql::TxMode::kWrite, [&](Connection& db) -> SqlResult<void> {
    TRY(
        db.Execute("UPDATE provider_event SET check_us = $1, attempts = $2 WHERE shard = $3 AND"
                   " workspace = $4 AND id = $5 AND check_us = $6",
                   {event.check_us, event.attempts, LedgerShard(event.workspace), event.workspace,
                    event.id, claimed_until_us}));
    return {};
  });
}

SqlResult<void> PaymentStore::PruneEvents(int64_t before_us) {
  return database_.Transact(sql::TxMode::kWrite, [&](Connection& db) -> SqlResult<void> {
    TRY(db.Execute("DELETE FROM provider_event WHERE check_us = 0 AND received_us < $1",
                   {before_us}));
    return {};
  });
}

}  // namespace tollgate::billing::payments
