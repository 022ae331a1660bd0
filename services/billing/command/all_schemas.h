// All migrations of billing's database. Each part of billing runs the migrations that it needs;
// this list is for commands that need all tables at once.
#pragma once

#include <span>

#include "common/sql/sql.h"

namespace tollgate::billing {

// Migrations in the order in which they can be applied.
std::span<const sql::Schema> AllSchemas();

}  // namespace tollgate::billing
