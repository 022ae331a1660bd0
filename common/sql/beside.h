// A connection for a command that works on a service's database while the service runs.
#pragma once

#include <memory>
#include <string>

#include "common/sql/sql.h"

namespace tollgate::sql {

// Fails if the database does not exist: opening must not create it. read_only: statements that
// write fail.
SqlResult<std::unique_ptr<Connection>> ConnectBeside(const std::string& url, bool read_only);

}  // namespace tollgate::sql
