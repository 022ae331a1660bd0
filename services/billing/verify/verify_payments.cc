#include "services/billing/verify/verify_payments.h"

#include "common/base/ledger_shard.h"
#include "common/base/try.h"

namespace tollgate::billing {

using sql::Row;
using sql::SqlResult;

SqlResult<bool> HasPayments(sql::Connection& db) {
  bool found = false;
  TRY(db.Query("SELECT 1 FROM schema_migration WHERE component = 'billing_payments'", {},
               [&](const Row&) { found = true; }));
  return found;
}

SqlResult<void> CheckPaymentLog(sql::Connection& db, const std::string& workspace,
                                Findings& findings) {
  int64_t head = 0, newest = 0, payments = 0;
  std::string head_hash, newest_hash;
  const std::initializer_list<sql::Param> key = {LedgerShard(workspace), workspace};
  auto read =
      db.Query("SELECT sequence, head FROM payment_head WHERE shard = $1 AND workspace = $2", key,
               [&](const Row& row) {
                 head = row.Int(0);
                 head_hash = row.Text(1);
               });
  if (!read.ok()) return read;
  read = db.Query(
      "SELECT sequence, hash FROM payment_event WHERE shard = $1 AND workspace = $2"
      " ORDER BY sequence DESC LIMIT 1",
      key, [&](const Row& row) {
        newest = row.Int(0);
        newest_hash = row.Text(1);
      });
  if (!read.ok()) return read;
  read = db.Query("SELECT count(*) FROM payment WHERE shard = $1 AND workspace = $2", key,
                  [&](const Row& row) { payments = row.Int(0); });
  if (!read.ok()) return read;
  if (newest != head || (head > 0 && newest_hash != head_hash)) {
    findings.Report("the log of payments ends with event " + std::to_string(newest) +
                    ", its head is event " + std::to_string(head));
  }
  if (head == 0 && payments > 0) findings.Report("payments have no log");
  return {};
}

}  // namespace tollgate::billing
