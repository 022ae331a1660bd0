#include "common/auth_schema/auth_schema.h"

#include "common/base/try.h"
#include "tollgate/common/v1/identity.pb.h"

namespace tollgate::auth_schema {

using sql::SqlResult;

namespace {

SqlResult<bool> HasRow(sql::Connection& connection, std::string_view text, std::string_view id) {
  bool found = false;
  TRY(connection.Query(text, {id}, [&](const sql::Row&) { found = true; }));
  return found;
}

}  // namespace

SqlResult<void> Migrate(sql::Database& database) {
  TRY(database.Migrate(kSchema.component, kSchema.migrations));
  const std::string genesis = audit::GenesisHash();
  return database.Transact(sql::TxMode::kWrite, [&](sql::Connection& sql) -> SqlResult<void> {
    TRY(
        sql.Execute("INSERT INTO auth_head (id, version, audit_sequence, audit_hash) "
                    "VALUES (1, 0, 0, $1) ON CONFLICT (id) DO NOTHING",
                    {sql::Param::Blob(genesis)}));
    return {};
  });
}

SqlResult<void> LockHead(sql::Connection& transaction) {
  return transaction.Query("SELECT version FROM auth_head WHERE id = 1 FOR UPDATE", {},
                           [](const sql::Row&) {});
}

SqlResult<bool> HasWorkspace(sql::Connection& connection, std::string_view workspace) {
  return HasRow(connection, "SELECT 1 FROM workspace WHERE workspace_id = $1", workspace);
}

SqlResult<bool> AddOwner(sql::Connection& transaction, std::string_view workspace,
                         std::string_view user_id, int64_t now_us) {
  TRY(auto known, HasRow(transaction, "SELECT 1 FROM person WHERE user_id = $1", user_id));
  if (!known) return false;
  TRY(PutMembership(transaction, workspace, user_id, common::v1::ROLE_OWNER, now_us));
  return true;
}

SqlResult<void> PutMembership(sql::Connection& transaction, std::string_view workspace,
                              std::string_view user_id, int64_t role, int64_t now_us) {
  TRY(transaction.Execute(
      "INSERT INTO membership (workspace_id, user_id, role, created_at_us) VALUES ($1, $2, $3, $4) "
      "ON CONFLICT (workspace_id, user_id) DO UPDATE SET role = excluded.role",
      {workspace, user_id, role, now_us}));
  return {};
}

}  // namespace tollgate::auth_schema
