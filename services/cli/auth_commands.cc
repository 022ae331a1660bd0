#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "common/base/crypto.h"
#include "services/cli/admin_cells.h"
#include "services/cli/commands.h"
#include "services/cli/invocation.h"

namespace tollgate::cli {
namespace {

namespace pb = tollgate::admin::v1;
using WorkspaceStub = pb::WorkspaceService::Stub;

std::vector<Column> WorkspaceColumns() {
  return {{"workspace_id", "WORKSPACE"},       {"name", "NAME"},
          {"requests_per_minute", "REQ/MIN"},  {"tokens_per_minute", "TOKENS/MIN"},
          {"concurrent_requests", "PARALLEL"}, {"created_at", "CREATED (UTC)"}};
}

std::vector<Cell> WorkspaceRow(const pb::Workspace& workspace, const pb::LimitValues& limits) {
  return {Text(LastPart(workspace.name())),    Text(workspace.display_name()),
          Limit(limits.requests_per_minute()), Limit(limits.tokens_per_minute()),
          Limit(limits.concurrent_requests()), Time(workspace.create_time())};
}

void AddLimits(CLI::App& command, pb::LimitValues& limits) {
  const auto add = [&command](const char* name, const char* help, auto set) {
    command.add_option_function<int64_t>(name, set, help)->check(CLI::NonNegativeNumber);
  };
  add("--requests-per-minute", "Requests per minute; 0 (default): no limit",
      [&limits](const int64_t& value) { limits.set_requests_per_minute(value); });
  add("--tokens-per-minute", "Tokens per minute; 0 (default): no limit",
      [&limits](const int64_t& value) { limits.set_tokens_per_minute(value); });
  add("--concurrent-requests", "Concurrent requests; 0 (default): no limit",
      [&limits](const int64_t& value) { limits.set_concurrent_requests(value); });
}

// Creates a workspace, its limits (if any) and its wallet. Repeating it with the same request id
// completes an earlier, incomplete run.
void CreateWorkspace(Invocation& invocation, const std::string& name, const std::string& id,
                     const pb::LimitValues& limits) {
  const auto stub = invocation.Workspaces();
  const auto limit_stub = invocation.Limits();
  if (!stub || !limit_stub) return;
  const std::string request_id = invocation.RequestId();
  pb::CreateWorkspaceRequest request;
  request.set_request_id(request_id);
  request.set_workspace_id(id);
  request.mutable_workspace()->set_display_name(name);
  pb::Workspace workspace;
  if (!invocation.Call("auth", [&](auto& context) {
        return stub->CreateWorkspace(&context, request, &workspace);
      })) {
    return;
  }
  if (limits.ByteSizeLong() > 0) {
    pb::UpdateLimitsRequest update;
    update.mutable_limits()->set_name(workspace.name() + "/limits");
    *update.mutable_limits()->mutable_workspace_limits() = limits;
    update.mutable_update_mask()->add_paths("workspace_limits");
    // A separate request id, derived from the first one.
    update.set_request_id(HexEncode(Sha256(request_id + " limits")));
    pb::Limits set;
    if (!invocation.Call("auth", [&](auto& context) {
          return limit_stub->UpdateLimits(&context, update, &set);
        })) {
      return;
    }
  }
  if (!invocation.OpenWallet(LastPart(workspace.name()))) return;
  Table table(WorkspaceColumns());
  table.Add(WorkspaceRow(workspace, limits));
  invocation.ShowRecord(table);
}

void ListWorkspaces(Invocation& invocation) {
  const auto stub = invocation.Workspaces();
  const auto limit_stub = invocation.Limits();
  if (!stub || !limit_stub) return;
  std::vector<pb::Workspace> workspaces;
  pb::ListWorkspacesRequest request;
  request.set_page_size(200);
  do {
    pb::ListWorkspacesResponse page;
    if (!invocation.Call("auth", [&](auto& context) {
          return stub->ListWorkspaces(&context, request, &page);
        })) {
      return;
    }
    workspaces.insert(workspaces.end(), page.workspaces().begin(), page.workspaces().end());
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  std::ranges::reverse(workspaces);  // the oldest first
  Table table(WorkspaceColumns());
  for (const pb::Workspace& workspace : workspaces) {
    pb::GetLimitsRequest get;
    get.set_name(workspace.name() + "/limits");
    pb::Limits limits;
    if (!invocation.Call(
            "auth", [&](auto& context) { return limit_stub->GetLimits(&context, get, &limits); })) {
      return;
    }
    table.Add(WorkspaceRow(workspace, limits.workspace_limits()));
  }
  invocation.ShowList(table, "workspaces", "No workspaces yet: tollgate workspace create NAME");
}

// Adds a command that acts on one workspace and takes a reason.
template <typename Request>
void AddLife(CLI::App& group, Invocation& invocation, const char* verb, const char* help,
             grpc::Status (WorkspaceStub::*method)(grpc::ClientContext*, const Request&,
                                                   pb::Workspace*)) {
  CLI::App& command = *group.add_subcommand(verb, help);
  auto id = std::make_shared<std::string>();
  auto reason = std::make_shared<std::string>();
  command.add_option("workspace", *id, "Workspace")->required();
  command.add_option("--reason", *reason, "Reason, for the audit log");
  command.callback([&invocation, method, id, reason] {
    const auto stub = invocation.Workspaces();
    if (!stub) return;
    Request request;
    request.set_name("workspaces/" + *id);
    request.set_reason(*reason);
    request.set_request_id(invocation.RequestId());
    pb::Workspace workspace;
    if (!invocation.Call("auth", [&](auto& context) {
          return (stub.get()->*method)(&context, request, &workspace);
        })) {
      return;
    }
    Table table({{"workspace_id", "WORKSPACE"}, {"state", "STATE"}, {"close_at", "CLOSES (UTC)"}});
    table.Add({Text(LastPart(workspace.name())),
               Text(EnumText(pb::WorkspaceState_Name(workspace.state()), "WORKSPACE_STATE_")),
               Time(workspace.close_time())});
    invocation.ShowRecord(table);
  });
}

void AddWorkspaceCommands(CLI::App& app, Invocation& invocation) {
  CLI::App& group = *app.add_subcommand("workspace", "Workspaces, which own keys and credit");
  group.require_subcommand(1);

  CLI::App& create = *group.add_subcommand("create", "Create a workspace");
  auto limits = std::make_shared<pb::LimitValues>();
  auto name = std::make_shared<std::string>();
  auto id = std::make_shared<std::string>();
  create.add_option("name", *name, "Display name")->required();
  create.add_option("--id", *id, "Id: lower-case letters, digits and hyphens; default: generated");
  AddLimits(create, *limits);
  create.callback(
      [&invocation, limits, name, id] { CreateWorkspace(invocation, *name, *id, *limits); });

  CLI::App& open = *group.add_subcommand(
      "open", "Open the wallet of a workspace whose creation was interrupted");
  open.add_option("workspace", *id, "Workspace")->required();
  open.callback([&invocation, id] {
    if (!invocation.OpenWallet(*id)) return;
    Table table({{"workspace_id", "Workspace"}, {"wallet_open", "Wallet open"}});
    table.Add({Text(*id), Bool(true)});
    invocation.ShowRecord(table);
  });

  AddLife<pb::CloseWorkspaceRequest>(group, invocation, "close",
                                     "Close a workspace in seven days: its keys are revoked then",
                                     &WorkspaceStub::CloseWorkspace);
  AddLife<pb::ReopenWorkspaceRequest>(group, invocation, "reopen",
                                      "Cancel the closing of a workspace",
                                      &WorkspaceStub::ReopenWorkspace);

  CLI::App& list = *group.add_subcommand("list", "List all workspaces");
  list.callback([&invocation] { ListWorkspaces(invocation); });
}

}  // namespace

void AddAuthCommands(CLI::App& app, Invocation& invocation) {
  AddWorkspaceCommands(app, invocation);
}

}  // namespace tollgate::cli
