// A connection for a command that works on a service's database beside the serving process.
#pragma once

#include <memory>
#include <string>

#include "common/sql/sql.h"

namespace tollgate::sql {

// Fails when there is no such database: opening must not create one. read_only: statements that
// write fail.
SqlResult<std::unique_ptr<Connection>> ConnectBeside(const std::string& url, bool read_only);

}  // namespace tollgate::sql
