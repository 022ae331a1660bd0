#include <CLI/CLI.hpp>

#include <memory>
#include <string>
#include <vector>

#include "services/cli/admin_cells.h"
#include "services/cli/commands.h"
#include "services/cli/invocation.h"

namespace tollgate::cli {
namespace {

namespace v1 = tollgate::auth::v1;

std::vector<Column> WorkspaceColumns() {
  return {{"workspace_id", "WORKSPACE"},       {"name", "NAME"},
          {"requests_per_minute", "REQ/MIN"},  {"tokens_per_minute", "TOKENS/MIN"},
          {"concurrent_requests", "PARALLEL"}, {"created_at", "CREATED (UTC)"}};
}

std::vector<Cell> WorkspaceRow(const v1::Workspace& workspace) {
  return {Text(workspace.workspace_id()),
          Text(workspace.name()),
          Limit(workspace.limits().requests_per_minute()),
          Limit(workspace.limits().tokens_per_minute()),
          Limit(workspace.limits().concurrent_requests()),
          Time(workspace.created_at_us(), "-")};
}

void AddLimits(CLI::App& command, v1::Limits& limits) {
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

namespace pb = tollgate::admin::v1;
using Stub = pb::WorkspaceService::Stub;

// A verb of one workspace, with a reason.
template <typename Request>
void AddLife(CLI::App& group, Invocation& invocation, const char* verb, const char* help,
             grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, pb::Workspace*)) {
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
  auto request = std::make_shared<v1::CreateWorkspaceRequest>();
  auto name = std::make_shared<std::string>();
  auto id = std::make_shared<std::string>();
  create.add_option("name", *name, "Display name")->required();
  create.add_option("--id", *id, "Id: lower-case letters, digits and hyphens; default: generated");
  AddLimits(create, *request->mutable_limits());
  create.callback([&invocation, request, name, id] {
    const auto stub = invocation.Auth();
    if (!stub) return;
    request->set_request_id(invocation.RequestId());
    request->set_workspace_id(*id);
    request->set_name(*name);
    request->set_actor(invocation.options().actor);
    v1::CreateWorkspaceResponse response;
    if (!invocation.Call("auth", [&](auto& context) {
          return stub->CreateWorkspace(&context, *request, &response);
        })) {
      return;
    }
    // Also of a workspace that an earlier try has created (decision 64).
    if (!invocation.OpenWallet(response.workspace().workspace_id())) return;
    Table table(WorkspaceColumns());
    table.Add(WorkspaceRow(response.workspace()));
    invocation.ShowRecord(table);
  });

  CLI::App& open = *group.add_subcommand(
      "open", "Open the wallet of a workspace whose creation did not get that far");
  open.add_option("workspace", *id, "Workspace")->required();
  open.callback([&invocation, id] {
    if (!invocation.OpenWallet(*id)) return;
    Table table({{"workspace_id", "Workspace"}, {"wallet_open", "Wallet open"}});
    table.Add({Text(*id), Bool(true)});
    invocation.ShowRecord(table);
  });

  AddLife<pb::CloseWorkspaceRequest>(group, invocation, "close",
                                     "Close a workspace in seven days: its keys are revoked then",
                                     &Stub::CloseWorkspace);
  AddLife<pb::ReopenWorkspaceRequest>(group, invocation, "reopen",
                                      "Cancel the closing of a workspace", &Stub::ReopenWorkspace);

  CLI::App& list = *group.add_subcommand("list", "List all workspaces");
  list.callback([&invocation] {
    const auto stub = invocation.Auth();
    if (!stub) return;
    v1::ListWorkspacesResponse response;
    if (!invocation.Call(
            "auth", [&](auto& context) { return stub->ListWorkspaces(&context, {}, &response); }))
      return;
    Table table(WorkspaceColumns());
    for (const v1::Workspace& workspace : response.workspaces()) table.Add(WorkspaceRow(workspace));
    invocation.ShowList(table, "workspaces", "No workspaces yet: tollgate workspace create NAME");
  });
}

}  // namespace

void AddAuthCommands(CLI::App& app, Invocation& invocation) {
  AddWorkspaceCommands(app, invocation);
}

}  // namespace tollgate::cli
