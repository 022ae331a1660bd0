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

// Whether libpq can read the URL and takes its parts for what they are. The error shows nothing of
// it, since it may hold a password; libpq's own errors would.
SqlResult<void> CheckPostgresUrl(const std::string& url);

}  // namespace tollgate::sql
