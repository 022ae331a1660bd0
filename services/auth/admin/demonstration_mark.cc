// Marks workspaces whose history is made up.
#include "common/base/try.h"
#include "services/auth/admin/workspace_admin.h"
#include "services/auth/storage/workspace_rows.h"

namespace tollgate::auth {

AdminResult<void> WorkspaceAdmin::MarkDemonstration(const Caller& caller,
                                                    const std::string& workspace) {
  const AuthStore::Once once{.scope = caller.actor,
                             .request_id = "mark-demonstration-" + workspace,
                             .content = "MarkDemonstration\n" + workspace};
  const auto done =
      store_.ChangeOnce(once, [&](AuthStore::Change& change) -> sql::SqlResult<std::string> {
        TRY(auto marked, MarkAsDemonstration(change.connection, workspace));
        if (!marked) {
          return change.Refuse(admin::NotFound("there is no workspace " + workspace).error);
        }
        TRY(change.Audit(
            EventOf(caller, "workspace.mark_demonstration", workspace, workspace, "")));
        return std::string();
      });
  if (!done) return Fail{done.error()};
  return {};
}

}  // namespace tollgate::auth
