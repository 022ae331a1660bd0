// The tables of payments, a separate component next to the ledger's. The workspace's ledger shard
// comes first in every key (decision 49).
#pragma once

#include <span>

#include "common/sql/sql.h"

namespace tollgate::billing::payments {

inline constexpr std::string_view kComponent = "billing_payments";
std::span<const sql::Migration> PaymentMigrations();

}  // namespace tollgate::billing::payments
