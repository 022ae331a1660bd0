// The tables of alerts, a component of their own beside the ledger's and the payments'. The ledger
// shard of the workspace comes first in every key (decision 49).
#pragma once

#include <span>

#include "common/sql/sql.h"

namespace tollgate::billing::alerts {

inline constexpr std::string_view kComponent = "billing_alerts";
std::span<const sql::Migration> AlertMigrations();

}  // namespace tollgate::billing::alerts
