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

}  // namespace tollgate::sql
