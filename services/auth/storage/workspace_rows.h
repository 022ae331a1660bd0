// Rows of workspaces, for the admin calls. Their limits are in auth_store.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/sql/sql.h"
#include "tollgate/admin/v1/workspaces.pb.h"

namespace tollgate::auth {

struct WorkspaceRow {
  std::string id, name, time_zone;
  admin::v1::WorkspaceState state = admin::v1::WORKSPACE_STATE_ACTIVE;
  int64_t created_us = 0, updated_us = 0, close_us = 0, revision = 0;
  bool demonstration = false;
};

sql::SqlResult<std::optional<WorkspaceRow>> ReadWorkspace(sql::Connection& connection,
                                                          const std::string& id);
// Returns false if there is a workspace with this id.
sql::SqlResult<bool> InsertWorkspace(sql::Connection& connection, const WorkspaceRow& row);
// Writes the fields that may change.
sql::SqlResult<void> UpdateWorkspace(sql::Connection& connection, const WorkspaceRow& row);
// Returns false if there is no such workspace.
sql::SqlResult<bool> MarkAsDemonstration(sql::Connection& connection, const std::string& id);

// A page of workspaces, newest first, after a position.
struct WorkspaceQuery {
  std::optional<std::vector<std::string>> ids;  // only these; not empty
  int64_t before_us = 0;
  std::string before_id;  // empty: from the start
  int limit = 0;
};
sql::SqlResult<std::vector<WorkspaceRow>> ListWorkspaces(sql::Connection& connection,
                                                         const WorkspaceQuery& query);
// Workspaces whose time of closing has come.
sql::SqlResult<std::vector<WorkspaceRow>> WorkspacesToClose(sql::Connection& connection,
                                                            int64_t now_us, int limit);

}  // namespace tollgate::auth
