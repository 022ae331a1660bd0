// All migrations of billing's database. Its parts migrate by themselves, each with those that it
// needs; this is for commands that want all tables at once.
#pragma once

#include <span>

#include "common/sql/sql.h"

namespace tollgate::billing {

// In the order in which they can be applied.
std::span<const sql::Schema> AllSchemas();

}  // namespace tollgate::billing
