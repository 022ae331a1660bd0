// Connection of a background thread. Reconnects after a loss of the database.
#pragma once

#include <memory>

#include "common/sql/sql.h"

namespace tollgate::billing {

// Opens the connection if it is null or broken. Returns the database's error.
sql::SqlResult<void> EnsureConnected(const sql::Database::Options& options,
                                     std::unique_ptr<sql::Connection>* connection);

}  // namespace tollgate::billing
