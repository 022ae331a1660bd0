#include "services/billing/storage/credit_by_hand.h"

#include "common/base/time_units.h"
#include "common/base/try.h"

namespace tollgate::billing {
namespace {

using sql::SqlResult;

constexpr std::string_view kCreditByHandTable = R"sql(
CREATE TABLE credit_by_hand (
  account {text} NOT NULL,
  workspace {text} NOT NULL,
  id {text} NOT NULL,
  amount {int} NOT NULL,
  at_us {int} NOT NULL,
  PRIMARY KEY (account, workspace, id)
){strict};
)sql";

}  // namespace

std::span<const sql::Migration> CreditByHandMigrations() {
  static const sql::Migration migrations[] = {{1, "credit by hand", kCreditByHandTable}};
  return migrations;
}

SqlResult<void> MigrateCreditByHand(sql::Database& database) {
  return database.Migrate(kCreditByHandComponent, CreditByHandMigrations());
}

SqlResult<bool> CountCreditByHand(sql::Connection& transaction, const CreditByHand& credit,
                                  int64_t limit_nano_usd, int64_t now_us) {
  // The row without a workspace is the lock of the account.
  TRY(transaction.Execute(
      "INSERT INTO credit_by_hand (account, workspace, id, amount, at_us)"
      " VALUES ($1, '', '', 0, $2)"
      " ON CONFLICT (account, workspace, id) DO UPDATE SET at_us = excluded.at_us",
      {credit.account, now_us}));
  TRY(transaction.Execute("DELETE FROM credit_by_hand WHERE account = $1 AND at_us <= $2",
                          {credit.account, now_us - kDayUs}));
  int64_t others = 0;
  TRY(transaction.Query(
      "SELECT CAST(coalesce(sum(amount), 0) AS BIGINT) FROM credit_by_hand WHERE account = $1 AND"
      " NOT (workspace = $2 AND id = $3)",
      {credit.account, credit.workspace, credit.id},
      [&](const sql::Row& row) { others = row.Int(0); }));
  if (credit.amount_nano_usd > limit_nano_usd - others) return false;
  // A repetition with a smaller amount, which the ledger refuses, must not lower the sum.
  TRY(transaction.Execute(
      "INSERT INTO credit_by_hand (account, workspace, id, amount, at_us)"
      " VALUES ($1, $2, $3, $4, $5)"
      " ON CONFLICT (account, workspace, id) DO UPDATE SET amount = excluded.amount,"
      " at_us = excluded.at_us WHERE excluded.amount > credit_by_hand.amount",
      {credit.account, credit.workspace, credit.id, credit.amount_nano_usd, now_us}));
  return true;
}

}  // namespace tollgate::billing
