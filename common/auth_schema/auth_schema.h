// The database that auth and people share: its schema, its audit log, and the few statements with
// which each of the two reaches rows of the other (docs/adr/0056).
#pragma once

#include <cstdint>
#include <string_view>

#include "common/audit/log.h"
#include "common/auth_schema/migrations.h"
#include "common/sql/sql.h"

namespace tollgate::auth_schema {

inline constexpr sql::Schema kSchema = {"auth", kMigrations};

// The audit log that people read.
inline constexpr audit::Tables kAuditTables = {"audit_event", "auth_head"};

// Applies the missing migrations and adds the head of the audit log. Several processes may call it
// concurrently.
sql::SqlResult<void> Migrate(sql::Database& database);

// Locks the row of auth_head until the transaction ends. Every audited change begins with it, so
// the changes become visible in the order of the audit log.
sql::SqlResult<void> LockHead(sql::Connection& transaction);

// People reads of auth's rows whether there is such a workspace.
sql::SqlResult<bool> HasWorkspace(sql::Connection& connection, std::string_view workspace);

// Auth writes of people's rows the owner of a new workspace. Returns false if there is no such
// person.
sql::SqlResult<bool> AddOwner(sql::Connection& transaction, std::string_view workspace,
                              std::string_view user_id, int64_t now_us);
// Adds the member, or changes the role. role: common::v1::Role.
sql::SqlResult<void> PutMembership(sql::Connection& transaction, std::string_view workspace,
                                   std::string_view user_id, int64_t role, int64_t now_us);

}  // namespace tollgate::auth_schema
