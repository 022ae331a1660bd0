// The tables of alerts, a separate component next to those of the ledger and payments. The
// workspace's ledger shard comes first in every key (decision 49).
#pragma once

#include <span>

#include "common/sql/sql.h"

namespace tollgate::billing::alerts {

inline constexpr std::string_view kComponent = "billing_alerts";
std::span<const sql::Migration> AlertMigrations();

}  // namespace tollgate::billing::alerts
