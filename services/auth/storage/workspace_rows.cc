#include "services/auth/storage/workspace_rows.h"

#include "common/base/try.h"

namespace tollgate::auth {

using sql::SqlResult;

namespace {

const std::string kSelectWorkspaces =
    "SELECT workspace_id, name, report_time_zone, state, created_at_us, updated_at_us, "
    "close_at_us, revision, demonstration FROM workspace";

WorkspaceRow ReadWorkspaceRow(const sql::Row& row) {
  return {.id = row.Text(0),
          .name = row.Text(1),
          .time_zone = row.Text(2),
          .state = static_cast<admin::v1::WorkspaceState>(row.Int(3)),
          .created_us = row.Int(4),
          .updated_us = row.Int(5),
          .close_us = row.Int(6),
          .revision = row.Int(7),
          .demonstration = row.Int(8) != 0};
}

SqlResult<std::vector<WorkspaceRow>> WorkspacesWhere(sql::Connection& connection,
                                                     const std::string& condition,
                                                     const std::vector<sql::Param>& params) {
  std::vector<WorkspaceRow> rows;
  TRY(connection.Query(kSelectWorkspaces + condition, params,
                       [&](const sql::Row& row) { rows.push_back(ReadWorkspaceRow(row)); }));
  return rows;
}

}  // namespace

SqlResult<std::optional<WorkspaceRow>> ReadWorkspace(sql::Connection& connection,
                                                     const std::string& id) {
  TRY(auto rows, WorkspacesWhere(connection, " WHERE workspace_id = $1", {id}));
  if (rows.empty()) return std::optional<WorkspaceRow>();
  return std::optional(std::move(rows.front()));
}

SqlResult<bool> InsertWorkspace(sql::Connection& connection, const WorkspaceRow& row) {
  TRY(auto added,
      connection.Execute("INSERT INTO workspace (workspace_id, name, requests_per_minute, "
                         "tokens_per_minute, concurrent_requests, created_at_us, report_time_zone, "
                         "updated_at_us) VALUES ($1, $2, 0, 0, 0, $3, $4, $3) ON CONFLICT "
                         "(workspace_id) DO NOTHING",
                         {row.id, row.name, row.created_us, row.time_zone}));
  return added > 0;
}

SqlResult<void> UpdateWorkspace(sql::Connection& connection, const WorkspaceRow& row) {
  return WithoutValue(connection.Execute(
      "UPDATE workspace SET name = $1, report_time_zone = $2, state = $3, updated_at_us = $4, "
      "close_at_us = $5, revision = $6 WHERE workspace_id = $7",
      {row.name, row.time_zone, static_cast<int64_t>(row.state), row.updated_us, row.close_us,
       row.revision, row.id}));
}

SqlResult<bool> MarkAsDemonstration(sql::Connection& connection, const std::string& id) {
  TRY(auto marked,
      connection.Execute("UPDATE workspace SET demonstration = 1 WHERE workspace_id = $1", {id}));
  return marked > 0;
}

SqlResult<std::vector<WorkspaceRow>> ListWorkspaces(sql::Connection& connection,
                                                    const WorkspaceQuery& query) {
  std::string text = " WHERE 1 = 1";
  std::vector<sql::Param> params;
  const auto next = [&](sql::Param value) {
    params.push_back(value);
    return "$" + std::to_string(params.size());
  };
  if (query.ids) {
    std::string marks;
    for (const std::string& id : *query.ids) marks += (marks.empty() ? "" : ", ") + next(id);
    text += " AND workspace_id IN (" + marks + ")";
  }
  if (!query.before_id.empty()) {
    const std::string us = next(query.before_us);
    text += " AND (created_at_us, workspace_id) < (" + us + ", " + next(query.before_id) + ")";
  }
  text += " ORDER BY created_at_us DESC, workspace_id DESC LIMIT " + std::to_string(query.limit);
  return WorkspacesWhere(connection, text, params);
}

SqlResult<std::vector<WorkspaceRow>> WorkspacesToClose(sql::Connection& connection, int64_t now_us,
                                                       int limit) {
  return WorkspacesWhere(connection,
                         " WHERE state = $1 AND close_at_us <= $2 LIMIT " + std::to_string(limit),
                         {static_cast<int64_t>(admin::v1::WORKSPACE_STATE_CLOSING), now_us});
}

}  // namespace tollgate::auth
