// The connection of a background thread, which outlives breaks of the database.
#pragma once

#include <memory>

#include "common/sql/sql.h"

namespace tollgate::billing {

// Opens the connection if it is null or broken. The error is the database's.
sql::SqlResult<void> EnsureConnected(const sql::Database::Options& options,
                                     std::unique_ptr<sql::Connection>* connection);

}  // namespace tollgate::billing
