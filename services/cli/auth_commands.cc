#include <CLI/CLI.hpp>

#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/money/money.h"
#include "services/cli/commands.h"
#include "services/cli/expiry.h"
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

std::string StateName(v1::KeyState state) {
  switch (state) {
    case v1::KEY_STATE_ACTIVE:
      return "active";
    case v1::KEY_STATE_DISABLED:
      return "disabled";
    case v1::KEY_STATE_REVOKED:
      return "revoked";
    default:
      return "unknown";
  }
}

std::vector<Column> KeyColumns() {
  return {{"key_id", "KEY"},
          {"workspace_id", "WORKSPACE"},
          {"name", "NAME"},
          {"state", "STATE"},
          {"last_four", "ENDS IN"},
          {"models", "MODELS"},
          {"expires_at", "EXPIRES"},
          {"monthly_quota_usd", "QUOTA/MONTH"},
          {"created_at", "CREATED (UTC)"}};
}

std::vector<Cell> KeyRow(const v1::Key& key) {
  return {Text(key.key_id()),
          Text(key.workspace_id()),
          Text(key.name()),
          Text(StateName(key.state())),
          Text(key.last_four()),
          List({key.allowed_models().begin(), key.allowed_models().end()}, "all"),
          Time(key.expires_at_us(), "never"),
          key.has_monthly_quota_nano_usd() ? Usd(key.monthly_quota_nano_usd()) : None("none"),
          Time(key.created_at_us(), "-")};
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

void CreateKey(Invocation& invocation, v1::CreateKeyRequest& request, const std::string& expires) {
  const auto expires_at = ParseExpiry(expires, SystemClock::Get().WallUs());
  if (!expires_at) {
    invocation.ReportError(
        "bad_option",
        "--expires must be a time in the future, such as 30d, 12h, 2027-01-31 or "
        "2027-01-31T12:00:00Z (UTC), or never");
    return;
  }
  const auto stub = invocation.Auth();
  if (!stub) return;
  request.set_expires_at_us(*expires_at);
  request.set_request_id(invocation.RequestId());
  request.set_actor(invocation.options().actor);
  v1::CreateKeyResponse response;
  if (!invocation.Call(
          "auth", [&](auto& context) { return stub->CreateKey(&context, request, &response); }))
    return;
  std::vector<Column> columns = KeyColumns();
  std::vector<Cell> row = KeyRow(response.key());
  columns.push_back({"secret", "SECRET"});
  row.push_back(response.secret().empty()
                    ? None("(shown only once; this request id was used before)")
                    : Text(response.secret()));
  Table table(columns);
  table.Add(row);
  invocation.ShowRecord(table);
  if (!invocation.options().json && !response.secret().empty()) {
    std::puts("\nSave the secret now: it is not stored and cannot be shown again.");
  }
}

void AddKeyState(CLI::App& group, Invocation& invocation, const char* verb, const char* help,
                 v1::KeyState state) {
  CLI::App& command = *group.add_subcommand(verb, help);
  auto request = std::make_shared<v1::SetKeyStateRequest>();
  request->set_state(state);
  auto key_id = std::make_shared<std::string>();
  auto reason = std::make_shared<std::string>();
  command.add_option("key", *key_id, "Key id (see: tollgate key list)")->required();
  command.add_option("--reason", *reason, "Reason, for the audit log");
  command.callback([&invocation, request, key_id, reason] {
    const auto stub = invocation.Auth();
    if (!stub) return;
    request->set_request_id(invocation.RequestId());
    request->set_key_id(*key_id);
    request->set_reason(*reason);
    request->set_actor(invocation.options().actor);
    v1::SetKeyStateResponse response;
    if (!invocation.Call("auth", [&](auto& context) {
          return stub->SetKeyState(&context, *request, &response);
        })) {
      return;
    }
    Table table(KeyColumns());
    table.Add(KeyRow(response.key()));
    invocation.ShowRecord(table);
  });
}

constexpr char kQuotaHelp[] = "The most that the key may spend per UTC month, in USD, or none";

// Sets the quota of a request from "12.50" or "none". Reports what is neither.
template <typename Request>
bool ReadQuota(Invocation& invocation, const std::string& text, Request& request) {
  if (text == "none") return true;
  const auto nano = ParseDecimalUsdToNano(text);
  if (!nano || *nano < 0) {
    invocation.ReportError("bad_option", "--quota must be an amount in USD such as 5, or none");
    return false;
  }
  request.set_monthly_quota_nano_usd(*nano);
  return true;
}

void AddKeyUpdate(CLI::App& group, Invocation& invocation) {
  CLI::App& update = *group.add_subcommand("update", "Change the quota of a key");
  auto request = std::make_shared<v1::SetKeyQuotaRequest>();
  auto key_id = std::make_shared<std::string>();
  auto quota = std::make_shared<std::string>();
  update.add_option("key", *key_id, "Key id (see: tollgate key list)")->required();
  update.add_option("--quota", *quota, kQuotaHelp)->required();
  update.callback([&invocation, request, key_id, quota] {
    if (!ReadQuota(invocation, *quota, *request)) return;
    const auto stub = invocation.Auth();
    if (!stub) return;
    request->set_request_id(invocation.RequestId());
    request->set_key_id(*key_id);
    request->set_actor(invocation.options().actor);
    v1::SetKeyQuotaResponse response;
    if (!invocation.Call("auth", [&](auto& context) {
          return stub->SetKeyQuota(&context, *request, &response);
        })) {
      return;
    }
    Table table(KeyColumns());
    table.Add(KeyRow(response.key()));
    invocation.ShowRecord(table);
  });
}

void AddKeyCommands(CLI::App& app, Invocation& invocation) {
  CLI::App& group = *app.add_subcommand("key", "Virtual keys");
  group.require_subcommand(1);

  CLI::App& create = *group.add_subcommand("create", "Create a key and show its secret once");
  auto request = std::make_shared<v1::CreateKeyRequest>();
  auto expires = std::make_shared<std::string>("never");
  create
      .add_option_function<std::string>(
          "-w,--workspace", [request](const std::string& id) { request->set_workspace_id(id); },
          "Workspace that the key belongs to")
      ->required();
  create.add_option_function<std::string>(
      "--name", [request](const std::string& name) { request->set_name(name); }, "Display name");
  create.add_option_function<std::vector<std::string>>(
      "--model",
      [request](const std::vector<std::string>& models) {
        request->mutable_allowed_models()->Assign(models.begin(), models.end());
      },
      "Allow only this model; repeatable");
  create.add_option("--expires", *expires,
                    "30d, 12h, 2027-01-31, 2027-01-31T12:00:00Z (UTC) or never");
  AddLimits(create, *request->mutable_limits());
  auto quota = std::make_shared<std::string>("none");
  create.add_option("--quota", *quota, kQuotaHelp);
  create.callback([&invocation, request, expires, quota] {
    if (ReadQuota(invocation, *quota, *request)) CreateKey(invocation, *request, *expires);
  });

  AddKeyUpdate(group, invocation);

  CLI::App& list = *group.add_subcommand("list", "List keys, without their secrets");
  auto workspace = std::make_shared<std::string>();
  list.add_option("-w,--workspace", *workspace, "Only keys of this workspace");
  list.callback([&invocation, workspace] {
    const auto stub = invocation.Auth();
    if (!stub) return;
    v1::ListKeysRequest query;
    query.set_workspace_id(*workspace);
    v1::ListKeysResponse response;
    if (!invocation.Call("auth",
                         [&](auto& context) { return stub->ListKeys(&context, query, &response); }))
      return;
    Table table(KeyColumns());
    for (const v1::Key& key : response.keys()) table.Add(KeyRow(key));
    invocation.ShowList(table, "keys", "No keys yet: tollgate key create --workspace ID");
  });

  AddKeyState(group, invocation, "disable",
              "Refuse the requests of a key until it is enabled again", v1::KEY_STATE_DISABLED);
  AddKeyState(group, invocation, "enable", "Enable a disabled key", v1::KEY_STATE_ACTIVE);
  AddKeyState(group, invocation, "revoke", "Revoke a key permanently", v1::KEY_STATE_REVOKED);
}

void AddAudit(CLI::App& app, Invocation& invocation) {
  CLI::App& command = *app.add_subcommand("audit", "The audit log, newest first");
  auto query = std::make_shared<v1::ListAuditEventsRequest>();
  command.add_option_function<std::string>(
      "-w,--workspace", [query](const std::string& id) { query->set_workspace_id(id); },
      "Only this workspace");
  command
      .add_option_function<int>(
          "--limit", [query](const int& limit) { query->set_limit(limit); },
          "At most this many; default 100")
      ->check(CLI::PositiveNumber);
  command.callback([&invocation, query] {
    const auto stub = invocation.Auth();
    if (!stub) return;
    v1::ListAuditEventsResponse response;
    if (!invocation.Call("auth", [&](auto& context) {
          return stub->ListAuditEvents(&context, *query, &response);
        })) {
      return;
    }
    Table table({{"sequence", "NO."},
                 {"at", "AT (UTC)"},
                 {"actor", "WHO"},
                 {"action", "WHAT"},
                 {"workspace_id", "WORKSPACE"},
                 {"subject", "SUBJECT"},
                 {"detail", "DETAIL"}});
    for (const v1::AuditEvent& event : response.events()) {
      table.Add({Integer(event.sequence()), Time(event.at_us(), "-"), Text(event.actor()),
                 Text(event.action()), Text(event.workspace_id()), Text(event.subject()),
                 Text(event.detail())});
    }
    invocation.ShowList(table, "events", "No changes yet.");
  });
}

}  // namespace

void AddAuthCommands(CLI::App& app, Invocation& invocation) {
  AddWorkspaceCommands(app, invocation);
  AddKeyCommands(app, invocation);
  AddAudit(app, invocation);
}

}  // namespace tollgate::cli
