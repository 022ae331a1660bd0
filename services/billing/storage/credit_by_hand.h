// Sums up the credit that each person makes alone: without a payment and without a second person
// (ADR 0053).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "common/sql/sql.h"

namespace tollgate::billing {

inline constexpr std::string_view kCreditByHandComponent = "billing credit by hand";
std::span<const sql::Migration> CreditByHandMigrations();
// Creates the table. Several parts of billing may call it, also concurrently.
sql::SqlResult<void> MigrateCreditByHand(sql::Database& database);

struct CreditByHand {
  std::string account;  // as in admin::Person
  std::string workspace;
  std::string id;  // of the command or payment
  int64_t amount_nano_usd = 0;
};
// Whether the account may make this credit alone: together with what it made alone in the last 24 h
// it stays within the limit. Counts it then, once for each id. Requires a write transaction.
sql::SqlResult<bool> CountCreditByHand(sql::Connection& transaction, const CreditByHand& credit,
                                       int64_t limit_nano_usd, int64_t now_us);

}  // namespace tollgate::billing
