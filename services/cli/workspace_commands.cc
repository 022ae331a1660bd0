#include <algorithm>
#include <string>
#include <vector>

#include "common/base/crypto.h"
#include "services/cli/admin_cells.h"
#include "services/cli/commands.h"
#include "services/cli/invocation.h"
#include "services/cli/pages.h"
#include "tollgate/admin/v1/limits.pb.h"
#include "tollgate/admin/v1/workspaces.pb.h"

namespace tollgate::cli {
namespace {

namespace pb = tollgate::admin::v1;

Table WorkspaceTable() {
  return Table({{"workspace_id", "WORKSPACE"},
                {"name", "NAME"},
                {"requests_per_minute", "REQ/MIN"},
                {"tokens_per_minute", "TOKENS/MIN"},
                {"concurrent_requests", "PARALLEL"},
                {"created_at", "CREATED (UTC)"}});
}

std::vector<Cell> WorkspaceRow(const pb::Workspace& workspace, const pb::LimitValues& limits) {
  return {Text(LastPart(workspace.name())),    Text(workspace.display_name()),
          Limit(limits.requests_per_minute()), Limit(limits.tokens_per_minute()),
          Limit(limits.concurrent_requests()), Time(workspace.create_time())};
}

// Sets the limits of a new workspace, if any, and opens its wallet. Repeating the command with the
// same request id completes an earlier, incomplete run.
void CompleteWorkspace(Invocation& invocation, const Arguments& arguments,
                       const google::protobuf::Message& response) {
  const auto& workspace = static_cast<const pb::Workspace&>(response);
  pb::UpdateLimitsRequest update;
  update.mutable_limits()->set_name(workspace.name() + "/limits");
  pb::LimitValues& limits = *update.mutable_limits()->mutable_workspace_limits();
  limits.set_requests_per_minute(arguments.Number("requests-per-minute"));
  limits.set_tokens_per_minute(arguments.Number("tokens-per-minute"));
  limits.set_concurrent_requests(arguments.Number("concurrent-requests"));
  if (limits.ByteSizeLong() > 0) {
    update.mutable_update_mask()->add_paths("workspace_limits");
    // A separate request id, derived from the first one.
    update.set_request_id(HexEncode(Sha256(invocation.RequestId() + " limits")));
    pb::Limits set;
    if (!invocation.Call("LimitService.UpdateLimits", update, set)) return;
  }
  if (!invocation.OpenWallet(LastPart(workspace.name()))) return;
  Table table = WorkspaceTable();
  table.Add(WorkspaceRow(workspace, limits));
  invocation.ShowRecord(table);
}

void OpenWallet(Invocation& invocation, const Arguments& arguments) {
  if (!invocation.OpenWallet(arguments.Get("workspace"))) return;
  Table table({{"workspace_id", "Workspace"}, {"wallet_open", "Wallet open"}});
  table.Add({Text(arguments.Get("workspace")), Bool(true)});
  invocation.ShowRecord(table);
}

void ListWorkspaces(Invocation& invocation, const Arguments&) {
  std::vector<pb::Workspace> workspaces;
  if (!EachPage<pb::ListWorkspacesResponse>(
          invocation, "WorkspaceService.ListWorkspaces", pb::ListWorkspacesRequest(),
          [&](const pb::ListWorkspacesResponse& page) {
            workspaces.insert(workspaces.end(), page.workspaces().begin(), page.workspaces().end());
            return true;
          })) {
    return;
  }
  std::ranges::reverse(workspaces);  // the oldest first
  Table table = WorkspaceTable();
  for (const pb::Workspace& workspace : workspaces) {
    pb::GetLimitsRequest get;
    get.set_name(workspace.name() + "/limits");
    pb::Limits limits;
    if (!invocation.Call("LimitService.GetLimits", get, limits)) return;
    table.Add(WorkspaceRow(workspace, limits.workspace_limits()));
  }
  invocation.ShowList(table, "workspaces", "No workspaces yet: tollgate workspace create NAME");
}

// A change of one workspace that takes a reason.
Command ChangeWorkspace(const char* words, const char* help, const char* method) {
  return Command(words, help, method,
                 {Flag("workspace", "Workspace").Required(),
                  Flag("--reason", "Reason, for the audit log", "reason")})
      .Sets("name", "workspaces/{workspace}")
      .Shows("workspace_id=name.id WORKSPACE | state STATE | close_at=close_time CLOSES (UTC)");
}

Flag WorkspaceLimit(const char* name, const std::string& what) {
  return Flag(name, what + "; 0 (default): no limit").NotNegative();
}

}  // namespace

std::vector<Command> WorkspaceCommands() {
  return {
      Command("workspace", "Workspaces, which own keys and credit"),
      Command("workspace create", "Create a workspace", "WorkspaceService.CreateWorkspace",
              {Flag("name", "Display name", "workspace.display_name").Required(),
               Flag("--id", "Id: lower-case letters, digits and hyphens; default: generated",
                    "workspace_id"),
               WorkspaceLimit("--requests-per-minute", "Requests per minute"),
               WorkspaceLimit("--tokens-per-minute", "Tokens per minute"),
               WorkspaceLimit("--concurrent-requests", "Concurrent requests")})
          .Then(CompleteWorkspace),
      Command("workspace open", "Open the wallet of a workspace whose creation was interrupted",
              OpenWallet, {Flag("workspace", "Workspace").Required()}),
      ChangeWorkspace("workspace close",
                      "Close a workspace in seven days: its keys are revoked then",
                      "WorkspaceService.CloseWorkspace"),
      ChangeWorkspace("workspace reopen", "Cancel the closing of a workspace",
                      "WorkspaceService.ReopenWorkspace"),
      Command("workspace list", "List all workspaces", ListWorkspaces),
  };
}

}  // namespace tollgate::cli
