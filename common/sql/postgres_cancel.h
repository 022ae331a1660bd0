// Ends a statement of PostgreSQL that runs.
#pragma once

struct pg_conn;

namespace tollgate::sql {

// Asks the server to end the statement that runs on this connection, without waiting.
void CancelAside(pg_conn* connection);

}  // namespace tollgate::sql
