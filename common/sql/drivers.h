// The drivers of Database::Connect. Internal to common/sql.
#pragma once

#include <memory>
#include <string>

#include "common/sql/sql.h"

namespace tollgate::sql {

SqlResult<std::unique_ptr<Connection>> ConnectSqlite(const std::string& path,
                                                     const Database::Options& options);
SqlResult<std::unique_ptr<Connection>> ConnectPostgres(const std::string& url,
                                                       const Database::Options& options);

// Checks that libpq can read the URL and splits it as intended. Unlike libpq's errors, the error
// shows no part of the URL, which may hold a password.
SqlResult<void> CheckPostgresUrl(const std::string& url);

}  // namespace tollgate::sql
