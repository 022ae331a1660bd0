#include <cstdio>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/crypto.h"
#include "common/money/money.h"
#include "services/cli/admin_cells.h"
#include "services/cli/commands.h"
#include "services/cli/expiry.h"
#include "services/cli/invocation.h"
#include "services/cli/message_fields.h"
#include "services/cli/pages.h"
#include "services/cli/run_command.h"
#include "tollgate/admin/v1/keys.pb.h"
#include "tollgate/admin/v1/workspaces.pb.h"

namespace tollgate::cli {
namespace {

namespace pb = tollgate::admin::v1;

constexpr char kKeyColumns[] =
    "key_id=name.id KEY | workspace_id=name.workspace WORKSPACE | name=display_name NAME | "
    "state STATE | last_four ENDS IN | models=allowed_models?all MODELS | "
    "addresses=allowed_addresses?all ADDRESSES | expires_at=expire_time?never EXPIRES | "
    "monthly_quota_usd?none QUOTA/MONTH | last_used_at=last_used_time?never LAST USED (UTC) | "
    "created_at=create_time CREATED (UTC)";

void ShowWithSecret(Invocation& invocation, const Arguments&,
                    const google::protobuf::Message& response) {
  std::vector<Shown> columns = Shown::Parse(kKeyColumns);
  std::vector<Cell> row = RowOf(columns, MessageAt(response, "key"));
  const std::string secret = TextAt(response, "secret");
  columns.push_back({.name = "secret", .title = "SECRET"});
  row.push_back(secret.empty() ? None("(shown only once; this request id was used before)")
                               : Text(secret));
  Table table = TableOf(columns);
  table.Add(row);
  invocation.ShowRecord(table);
  if (!invocation.options().json && !secret.empty()) {
    std::puts("\nSave the secret now: it is not stored and cannot be shown again.");
  }
}

// Calls `each` for the keys of all workspaces, or of one, until it returns false. Returns false if
// a call failed.
bool EachKey(Invocation& invocation, const std::string& workspace, const std::string& query,
             const std::function<bool(const pb::Key&)>& each) {
  bool wanted = true, done = true;
  const auto list = [&](const std::string& parent) {
    pb::ListKeysRequest request;
    request.set_parent(parent);
    request.set_query(query);
    done = EachPage<pb::ListKeysResponse>(invocation, "KeyService.ListKeys", request,
                                          [&](const pb::ListKeysResponse& page) {
                                            for (const pb::Key& key : page.keys()) {
                                              wanted = wanted && each(key);
                                            }
                                            return wanted;
                                          });
    return done && wanted;
  };
  if (!workspace.empty()) {
    list("workspaces/" + workspace);
    return done;
  }
  return EachPage<pb::ListWorkspacesResponse>(invocation, "WorkspaceService.ListWorkspaces",
                                              pb::ListWorkspacesRequest(),
                                              [&](const pb::ListWorkspacesResponse& page) {
                                                for (const pb::Workspace& one : page.workspaces()) {
                                                  if (!list(one.name())) return false;
                                                }
                                                return true;
                                              }) &&
         done;
}

// Replaces the argument `key`, an id or a name, by the key's resource name.
bool FindKey(Invocation& invocation, Arguments& arguments) {
  const std::string key = arguments.Get("key");
  const std::string workspace = arguments.Get("workspace");
  if (key.find('/') != std::string::npos) return true;
  std::string name = workspace.empty() ? "" : "workspaces/" + workspace + "/keys/" + key;
  if (name.empty() && !EachKey(invocation, "", key, [&](const pb::Key& candidate) {
        if (LastPart(candidate.name()) == key) name = candidate.name();
        return name.empty();
      })) {
    return false;
  }
  if (name.empty()) {
    invocation.ReportError("not_found", "there is no key \"" + key + "\"; see: tollgate key list");
    return false;
  }
  arguments.Set("key", {name});
  return true;
}

void ListKeys(Invocation& invocation, const Arguments& arguments) {
  const std::vector<Shown> columns = Shown::Parse(kKeyColumns);
  Table table = TableOf(columns);
  if (EachKey(invocation, arguments.Get("workspace"), arguments.Get("query"),
              [&](const pb::Key& key) {
                table.Add(RowOf(columns, key));
                return true;
              })) {
    invocation.ShowList(table, "keys", "No keys yet: tollgate key create --workspace ID");
  }
}

// Reads the secret from standard input: arguments appear in the process list and in the shell's
// history.
bool ReadSecret(Invocation&, Arguments& arguments) {
  char line[1024] = {};
  if (std::fgets(line, sizeof line, stdin) == nullptr) line[0] = '\0';
  std::string secret = line;
  while (!secret.empty() && static_cast<unsigned char>(secret.back()) <= ' ') secret.pop_back();
  arguments.Set("secret", {secret});
  return true;
}

std::optional<int64_t> Expiry(const std::string& text) {
  return ParseExpiry(text, SystemClock::Get().WallUs());
}

std::optional<int64_t> Overlap(const std::string& text) {
  return text == "0" ? std::optional<int64_t>(0) : ParseSpan(text);
}

std::optional<int64_t> Quota(const std::string& text) {
  const auto nano = ParseDecimalUsdToNano(text);
  return nano && *nano >= 0 ? nano : std::nullopt;
}

std::optional<int64_t> Sha256Digits(const std::string& text) {
  const auto bytes = HexDecode(text);
  return bytes && bytes->size() == 32 ? std::optional<int64_t>(0) : std::nullopt;
}

// A change of one key: by its resource name, or its id with or without its workspace.
Command ChangeKey(const char* words, const char* help, const char* method,
                  const std::vector<Flag>& more, const char* name = "name") {
  std::vector<Flag> flags = {
      Flag("key", "Key id (see: tollgate key list), or its full name").Required(),
      Flag("-w,--workspace", "Workspace of the key; default: searched")};
  flags.insert(flags.end(), more.begin(), more.end());
  return Command(words, help, method, flags).Before(FindKey).Sets(name, "{key}").Shows(kKeyColumns);
}

Command ChangeKeyState(const char* words, const char* help, const char* method) {
  return ChangeKey(words, help, method, {Flag("--reason", "Reason, for the audit log", "reason")});
}

Flag ParentOfKey(const char* help) {
  return Flag("-w,--workspace", help, "parent").Into("workspaces/{}").Required();
}

Flag KeyLimit(const char* name, const std::string& what, const std::string& field) {
  return Flag(name, what + "; 0: no limit", field).NotNegative();
}

// Flags for the settings of a key, after these. key: its path in the request.
std::vector<Flag> WithSettings(std::vector<Flag> flags, const std::string& key) {
  const std::vector<Flag> settings = {
      Flag("--name", "Display name", key + ".display_name"),
      Flag("--model", "Allow only this model, or namespace/*; repeatable; all: every model",
           key + ".allowed_models")
          .Unset("all"),
      Flag("--address", "Allow only this client address or network; repeatable; all: every address",
           key + ".allowed_addresses")
          .Unset("all"),
      Flag("--expires", "30d, 12h, 2027-01-31, 2027-01-31T12:00:00Z (UTC) or never",
           key + ".expire_time")
          .Unset("never")
          .As(Expiry,
              "--expires must be a time in the future, such as 30d, 12h, 2027-01-31 or "
              "2027-01-31T12:00:00Z (UTC), or never"),
      Flag("--quota", "The most that the key may spend per UTC month, in USD, or none",
           key + ".monthly_quota_usd")
          .Unset("none")
          .As(Quota, "--quota must be an amount in USD such as 5, or none"),
      Flag("--label", "name=value; repeatable; none: no labels", key + ".labels")
          .Unset("none")
          .As(nullptr, "--label must be name=value, or none"),
      KeyLimit("--requests-per-minute", "Requests per minute", key + ".limits.requests_per_minute"),
      KeyLimit("--tokens-per-minute", "Tokens per minute", key + ".limits.tokens_per_minute"),
      KeyLimit("--concurrent-requests", "Concurrent requests",
               key + ".limits.concurrent_requests")};
  flags.insert(flags.end(), settings.begin(), settings.end());
  return flags;
}

}  // namespace

std::vector<Command> KeyCommands() {
  return {
      Command("key", "Virtual keys"),
      Command("key create", "Create a key and show its secret once", "KeyService.CreateKey",
              WithSettings({ParentOfKey("Workspace that the key belongs to")}, "key"))
          .Sets("key.display_name", "{name}")  // the request must have a key, also without settings
          .Then(ShowWithSecret),
      ChangeKey("key update", "Change settings of a key", "KeyService.UpdateKey",
                WithSettings({}, "key"), "key.name"),
      Command("key list", "List keys, without their secrets", ListKeys,
              {Flag("-w,--workspace", "Only keys of this workspace"),
               Flag("--query", "Prefix of the name, the key id or the last four characters")}),
      ChangeKeyState("key disable", "Refuse the requests of a key until it is enabled again",
                     "KeyService.DisableKey"),
      ChangeKeyState("key enable", "Enable a disabled key", "KeyService.EnableKey"),
      ChangeKeyState("key revoke", "Revoke a key permanently", "KeyService.RevokeKey"),
      ChangeKey("key rotate",
                "Make a key with the same settings; the old one works for the overlap only",
                "KeyService.RotateKey",
                {Flag("--overlap", "45m, 12h or 7d; 0: the old key expires at once", "overlap")
                     .Default("24h")
                     .As(Overlap, "--overlap must be a time such as 45m, 12h or 7d, or 0")})
          .Then(ShowWithSecret),
      Command("key import", "Take over a key of another system by the SHA-256 of the whole key",
              "KeyService.ImportKeys",
              WithSettings({ParentOfKey("Workspace that gets the key"),
                            Flag("sha256", "64 hexadecimal digits", "keys.sha256")
                                .Required()
                                .As(Sha256Digits, "the SHA-256 is 64 hexadecimal digits")},
                           "keys.key"))
          .Sets("keys.key.display_name", "{name}")
          .Shows(kKeyColumns, "keys"),
      Command("key report-leak",
              "Disable the key whose secret is on standard input, if there is one",
              "KeyService.ReportLeakedKey",
              {Flag("--source", "Where it was found, for the audit log", "source")})
          .Before(ReadSecret)
          .Sets("secret", "{secret}")
          .Shows("reported Reported")
          .WithCell("reported", [](const google::protobuf::Message&) { return Bool(true); }),
  };
}

}  // namespace tollgate::cli
