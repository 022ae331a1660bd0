// Part of the store: what the rules of auto-reload ask about a workspace (reload_rules.h), and
// which card is charged and which charges are under way.
#include "common/base/ledger_shard.h"
#include "common/base/try.h"
#include "services/billing/payments/payment_store.h"

namespace tollgate::billing::payments {

using sql::Row;
using sql::SqlResult;

SqlResult<std::vector<int64_t>> WorkspaceTx::SentReloads(int limit, const std::string& without) {
  std::vector<int64_t> sent_us;
  TRY(
      db_.Query("SELECT sent_us FROM payment WHERE shard = $1 AND workspace = $2 AND reload = 1 AND"
                " sent_us > 0 AND id <> $3 ORDER BY created_us DESC LIMIT $4",
                {shard_, workspace_, without, limit},
                [&](const Row& row) { sent_us.push_back(row.Int(0)); }));
  return sent_us;
}

SqlResult<bool> WorkspaceTx::IsMethodDisputed(const std::string& method) {
  int64_t count = 0;
  TRY(db_.Query(
      "SELECT count(*) FROM payment_dispute d JOIN payment p ON p.shard = d.shard AND"
      " p.workspace = d.workspace AND p.id = d.payment WHERE d.shard = $1 AND d.workspace = $2 AND"
      " d.state IN (1, 2, 3) AND p.method = $3",
      {shard_, workspace_, method}, [&](const Row& row) { count = row.Int(0); }));
  return count > 0;
}

SqlResult<bool> WorkspaceTx::ChooseMethod(const std::string& id) {
  TRY(auto done,
      db_.Execute(
          "UPDATE payment_method SET chosen_us = $1 WHERE shard = $2 AND workspace = $3 AND id = $4"
          " AND deleted_us = 0",
          {now_us_, shard_, workspace_, id}));
  return done > 0;
}

SqlResult<void> WorkspaceTx::RefuseMethod(const std::string& id, const std::string& code) {
  TRY(db_.Execute(
      "UPDATE payment_method SET refused = $1 WHERE shard = $2 AND workspace = $3 AND id = $4",
      {code, shard_, workspace_, id}));
  return {};
}

SqlResult<std::vector<std::string>> PaymentStore::ReloadingSince(int64_t created_us) {
  std::vector<std::string> workspaces;
  auto done = database_.Transact(sql::TxMode::kRead, [&](sql::Connection& db) {
    workspaces.clear();
    return db.Query(
        "SELECT r.workspace FROM auto_reload r JOIN payment p ON p.shard = r.shard AND"
        " p.workspace = r.workspace AND p.id = r.reload_id WHERE r.enabled = 1 AND"
        " r.state IN (2, 3, 4) AND p.created_us >= $1",
        {created_us}, [&](const Row& row) { workspaces.push_back(row.Text(0)); });
  });
  if (!done.ok()) return Fail{std::move(done).error()};
  return workspaces;
}

}  // namespace tollgate::billing::payments
