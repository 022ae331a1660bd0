// The tables of payments, a component of their own beside the ledger's. The ledger shard of the
// workspace comes first in every key (decision 49).
#pragma once

#include <span>

#include "common/sql/sql.h"

namespace tollgate::billing::payments {

inline constexpr std::string_view kComponent = "billing_payments";
std::span<const sql::Migration> PaymentMigrations();

}  // namespace tollgate::billing::payments
