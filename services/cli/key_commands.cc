#include <CLI/CLI.hpp>

#include <memory>
#include <string>
#include <vector>

#include "common/base/crypto.h"
#include "services/cli/admin_cells.h"
#include "services/cli/commands.h"
#include "services/cli/expiry.h"
#include "services/cli/invocation.h"
#include "services/cli/key_arguments.h"

namespace tollgate::cli {
namespace {

using KeyStub = pb::KeyService::Stub;

constexpr char kNone[] = "none";

std::vector<Column> KeyColumns() {
  return {{"key_id", "KEY"},
          {"workspace_id", "WORKSPACE"},
          {"name", "NAME"},
          {"state", "STATE"},
          {"last_four", "ENDS IN"},
          {"models", "MODELS"},
          {"addresses", "ADDRESSES"},
          {"expires_at", "EXPIRES"},
          {"monthly_quota_usd", "QUOTA/MONTH"},
          {"last_used_at", "LAST USED (UTC)"},
          {"created_at", "CREATED (UTC)"}};
}

Cell TimeOr(bool set, const google::protobuf::Timestamp& time, const char* otherwise) {
  return set ? Time(time) : None(otherwise);
}

std::vector<Cell> KeyRow(const pb::Key& key) {
  return {Text(LastPart(key.name())),
          Text(WorkspaceOf(key.name())),
          Text(key.display_name()),
          Text(EnumText(pb::KeyState_Name(key.state()), "KEY_STATE_")),
          Text(key.last_four()),
          List({key.allowed_models().begin(), key.allowed_models().end()}, "all"),
          List({key.allowed_addresses().begin(), key.allowed_addresses().end()}, "all"),
          TimeOr(key.has_expire_time(), key.expire_time(), "never"),
          key.has_monthly_quota_usd() ? Usd(key.monthly_quota_usd()) : None(kNone),
          TimeOr(key.has_last_used_time(), key.last_used_time(), "never"),
          Time(key.create_time())};
}

void Show(Invocation& invocation, const pb::Key& key) {
  Table table(KeyColumns());
  table.Add(KeyRow(key));
  invocation.ShowRecord(table);
}

void ShowWithSecret(Invocation& invocation, const pb::Key& key, const std::string& secret) {
  std::vector<Column> columns = KeyColumns();
  std::vector<Cell> row = KeyRow(key);
  columns.push_back({"secret", "SECRET"});
  row.push_back(secret.empty() ? None("(shown only once; this request id was used before)")
                               : Text(secret));
  Table table(columns);
  table.Add(row);
  invocation.ShowRecord(table);
  if (!invocation.options().json && !secret.empty()) {
    std::puts("\nSave the secret now: it is not stored and cannot be shown again.");
  }
}

void AddCreateKey(CLI::App& group, Invocation& invocation) {
  CLI::App& create = *group.add_subcommand("create", "Create a key and show its secret once");
  auto workspace = std::make_shared<std::string>();
  auto settings = std::make_shared<Settings>();
  create.add_option("-w,--workspace", *workspace, "Workspace that the key belongs to")->required();
  settings->AddTo(create);
  create.callback([&invocation, workspace, settings] {
    if (!settings->Read(invocation)) return;
    const auto stub = invocation.Keys();
    if (!stub) return;
    pb::CreateKeyRequest request;
    request.set_parent("workspaces/" + *workspace);
    request.set_request_id(invocation.RequestId());
    *request.mutable_key() = settings->key;
    pb::CreateKeyResponse response;
    if (invocation.Call(
            "auth", [&](auto& context) { return stub->CreateKey(&context, request, &response); })) {
      ShowWithSecret(invocation, response.key(), response.secret());
    }
  });
}

void AddUpdate(CLI::App& group, Invocation& invocation) {
  CLI::App& update = *group.add_subcommand("update", "Change settings of a key");
  auto argument = std::make_shared<KeyArgument>();
  auto settings = std::make_shared<Settings>();
  argument->AddTo(update);
  settings->AddTo(update);
  update.callback([&invocation, argument, settings] {
    if (!settings->Read(invocation)) return;
    const auto stub = invocation.Keys();
    const std::string name = stub ? argument->Name(invocation) : "";
    if (name.empty()) return;
    pb::UpdateKeyRequest request;
    *request.mutable_key() = settings->key;
    request.mutable_key()->set_name(name);
    request.set_request_id(invocation.RequestId());
    for (const std::string& field : settings->fields)
      request.mutable_update_mask()->add_paths(field);
    pb::Key key;
    if (invocation.Call("auth",
                        [&](auto& context) { return stub->UpdateKey(&context, request, &key); })) {
      Show(invocation, key);
    }
  });
}

template <typename Request>
void AddVerb(CLI::App& group, Invocation& invocation, const char* verb, const char* help,
             grpc::Status (KeyStub::*method)(grpc::ClientContext*, const Request&, pb::Key*)) {
  CLI::App& command = *group.add_subcommand(verb, help);
  auto argument = std::make_shared<KeyArgument>();
  auto reason = std::make_shared<std::string>();
  argument->AddTo(command);
  command.add_option("--reason", *reason, "Reason, for the audit log");
  command.callback([&invocation, method, argument, reason] {
    const auto stub = invocation.Keys();
    const std::string name = stub ? argument->Name(invocation) : "";
    if (name.empty()) return;
    Request request;
    request.set_name(name);
    request.set_reason(*reason);
    request.set_request_id(invocation.RequestId());
    pb::Key key;
    if (invocation.Call("auth", [&](auto& context) {
          return (stub.get()->*method)(&context, request, &key);
        })) {
      Show(invocation, key);
    }
  });
}

void AddRotate(CLI::App& group, Invocation& invocation) {
  CLI::App& rotate = *group.add_subcommand(
      "rotate", "Make a key with the same settings; the old one works for the overlap only");
  auto argument = std::make_shared<KeyArgument>();
  auto overlap = std::make_shared<std::string>("24h");
  argument->AddTo(rotate);
  rotate.add_option("--overlap", *overlap, "45m, 12h or 7d; 0: the old key expires at once")
      ->capture_default_str();
  rotate.callback([&invocation, argument, overlap] {
    const auto span = *overlap == "0" ? std::optional<int64_t>(0) : ParseSpan(*overlap);
    if (!span) {
      invocation.ReportError("bad_option", "--overlap must be a time such as 45m, 12h or 7d, or 0");
      return;
    }
    const auto stub = invocation.Keys();
    const std::string name = stub ? argument->Name(invocation) : "";
    if (name.empty()) return;
    pb::RotateKeyRequest request;
    request.set_name(name);
    request.mutable_overlap()->set_seconds(*span / 1'000'000);
    request.set_request_id(invocation.RequestId());
    pb::RotateKeyResponse response;
    if (invocation.Call(
            "auth", [&](auto& context) { return stub->RotateKey(&context, request, &response); })) {
      ShowWithSecret(invocation, response.key(), response.secret());
    }
  });
}

void AddListKeys(CLI::App& group, Invocation& invocation) {
  CLI::App& list = *group.add_subcommand("list", "List keys, without their secrets");
  auto workspace = std::make_shared<std::string>();
  auto query = std::make_shared<std::string>();
  list.add_option("-w,--workspace", *workspace, "Only keys of this workspace");
  list.add_option("--query", *query, "Prefix of the name, the key id or the last four characters");
  list.callback([&invocation, workspace, query] {
    const auto keys = invocation.Keys();
    const auto workspaces = invocation.Workspaces();
    if (!keys || !workspaces) return;
    std::vector<std::string> parents;
    if (!workspace->empty()) parents.push_back("workspaces/" + *workspace);
    pb::ListWorkspacesRequest all;
    all.set_page_size(200);
    while (workspace->empty()) {
      pb::ListWorkspacesResponse page;
      if (!invocation.Call("auth", [&](auto& context) {
            return workspaces->ListWorkspaces(&context, all, &page);
          })) {
        return;
      }
      for (const pb::Workspace& one : page.workspaces()) parents.push_back(one.name());
      if (page.next_page_token().empty()) break;
      all.set_page_token(page.next_page_token());
    }
    Table table(KeyColumns());
    for (const std::string& parent : parents) {
      pb::ListKeysRequest request;
      request.set_parent(parent);
      request.set_query(*query);
      request.set_page_size(200);
      do {
        pb::ListKeysResponse page;
        if (!invocation.Call(
                "auth", [&](auto& context) { return keys->ListKeys(&context, request, &page); })) {
          return;
        }
        for (const pb::Key& key : page.keys()) table.Add(KeyRow(key));
        request.set_page_token(page.next_page_token());
      } while (!request.page_token().empty());
    }
    invocation.ShowList(table, "keys", "No keys yet: tollgate key create --workspace ID");
  });
}

void AddImport(CLI::App& group, Invocation& invocation) {
  CLI::App& import = *group.add_subcommand(
      "import", "Take over a key of another system by the SHA-256 of the whole key");
  auto workspace = std::make_shared<std::string>();
  auto digest = std::make_shared<std::string>();
  auto settings = std::make_shared<Settings>();
  import.add_option("-w,--workspace", *workspace, "Workspace that gets the key")->required();
  import.add_option("sha256", *digest, "64 hexadecimal digits")->required();
  settings->AddTo(import);
  import.callback([&invocation, workspace, digest, settings] {
    if (!settings->Read(invocation)) return;
    const auto bytes = HexDecode(*digest);
    if (!bytes || bytes->size() != 32) {
      invocation.ReportError("bad_option", "the SHA-256 is 64 hexadecimal digits");
      return;
    }
    const auto stub = invocation.Keys();
    if (!stub) return;
    pb::ImportKeysRequest request;
    request.set_parent("workspaces/" + *workspace);
    request.set_request_id(invocation.RequestId());
    request.add_keys()->set_sha256(*bytes);
    *request.mutable_keys(0)->mutable_key() = settings->key;
    pb::ImportKeysResponse response;
    if (invocation.Call("auth", [&](auto& context) {
          return stub->ImportKeys(&context, request, &response);
        })) {
      Show(invocation, response.keys(0));
    }
  });
}

void AddReportLeak(CLI::App& group, Invocation& invocation) {
  CLI::App& report = *group.add_subcommand(
      "report-leak", "Disable the key whose secret is on standard input, if there is one");
  auto source = std::make_shared<std::string>();
  report.add_option("--source", *source, "Where it was found, for the audit log");
  report.callback([&invocation, source] {
    // Read from standard input: arguments appear in the process list and in the shell's history.
    char line[1024] = {};
    if (std::fgets(line, sizeof line, stdin) == nullptr) line[0] = '\0';
    std::string secret = line;
    while (!secret.empty() && static_cast<unsigned char>(secret.back()) <= ' ') secret.pop_back();
    const auto stub = invocation.Keys();
    if (!stub) return;
    pb::ReportLeakedKeyRequest request;
    request.set_secret(secret);
    request.set_source(*source);
    pb::ReportLeakedKeyResponse response;
    if (!invocation.Call("auth", [&](auto& context) {
          return stub->ReportLeakedKey(&context, request, &response);
        })) {
      return;
    }
    Table table({{"reported", "Reported"}});
    table.Add({Bool(true)});
    invocation.ShowRecord(table);
  });
}

}  // namespace

void AddKeyCommands(CLI::App& app, Invocation& invocation) {
  CLI::App& group = *app.add_subcommand("key", "Virtual keys");
  group.require_subcommand(1);
  AddCreateKey(group, invocation);
  AddUpdate(group, invocation);
  AddListKeys(group, invocation);
  AddVerb<pb::DisableKeyRequest>(group, invocation, "disable",
                                 "Refuse the requests of a key until it is enabled again",
                                 &KeyStub::DisableKey);
  AddVerb<pb::EnableKeyRequest>(group, invocation, "enable", "Enable a disabled key",
                                &KeyStub::EnableKey);
  AddVerb<pb::RevokeKeyRequest>(group, invocation, "revoke", "Revoke a key permanently",
                                &KeyStub::RevokeKey);
  AddRotate(group, invocation);
  AddImport(group, invocation);
  AddReportLeak(group, invocation);
}

}  // namespace tollgate::cli
