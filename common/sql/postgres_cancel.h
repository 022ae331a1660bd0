// Cancels a running statement of PostgreSQL.
#pragma once

struct pg_conn;

namespace tollgate::sql {

// Asks the server to cancel the running statement of this connection, without waiting.
void CancelAside(pg_conn* connection);

}  // namespace tollgate::sql
