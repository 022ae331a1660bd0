// Opens libpq connections and limits the wait for their results. Internal to common/sql.
#pragma once

#include <libpq-fe.h>

#include <chrono>
#include <string>

#include "common/sql/sql.h"

namespace tollgate::sql {

// Never null; the connection's status tells whether it succeeded. Takes up to connect_timeout_ms
// for each server in the URL.
PGconn* OpenPostgres(const std::string& url, const Database::Options& options);

// Waits until PQgetResult would not block, because there is a result or the connection is lost.
// Returns false on a timeout. time_point::max() waits without limit.
bool WaitForResult(PGconn* connection, std::chrono::steady_clock::time_point until);

}  // namespace tollgate::sql
