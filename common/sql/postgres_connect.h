// libpq's connections: how they are opened, and how long their results are waited for. Internal to
// common/sql.
#pragma once

#include <libpq-fe.h>

#include <chrono>
#include <string>

#include "common/sql/sql.h"

namespace tollgate::sql {

// Never null; whether it succeeded is in its status. Takes connect_timeout_ms for each server that
// the URL names.
PGconn* OpenPostgres(const std::string& url, const Database::Options& options);

// Waits until PQgetResult does not: there is a result, or the connection is lost. False: neither by
// then. time_point::max() waits without limit.
bool WaitForResult(PGconn* connection, std::chrono::steady_clock::time_point until);

}  // namespace tollgate::sql
