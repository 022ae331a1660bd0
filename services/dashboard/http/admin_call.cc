#include "services/dashboard/http/admin_call.h"

#include <algorithm>
#include <charconv>

#include "common/base/ascii.h"
#include "common/base/id.h"
#include "common/json/json.h"
#include "services/dashboard/http/admin_fields.h"

namespace tollgate::dashboard {
namespace {

// The actor in audit events and ledger entries.
constexpr std::string_view kActor = "dashboard";

// The segments of the path after kAdminPath. Never percent-decoded: ids are letters, digits and
// hyphens, and any other segment is not found.
std::vector<std::string_view> SplitPath(std::string_view path) {
  std::vector<std::string_view> parts;
  path.remove_prefix(kAdminPath.size());
  while (true) {
    const size_t slash = path.find('/');
    parts.push_back(path.substr(0, slash));
    if (slash == std::string_view::npos) return parts;
    path.remove_prefix(slash + 1);
  }
}

bool IsId(std::string_view text) {
  return !text.empty() && text.size() <= 63 &&
         std::all_of(text.begin(), text.end(), [](char c) { return IsAlnum(c) || c == '-'; });
}

// The query parameters that exist. Their values need no percent-decoding.
struct Query {
  std::string workspace_id;
  int32_t limit = 0;
};
Result<Query> ParseQuery(std::string_view text, bool with_limit) {
  Query query;
  while (!text.empty()) {
    const size_t end = std::min(text.find('&'), text.size());
    const std::string_view pair = text.substr(0, end);
    const size_t equals = std::min(pair.find('='), pair.size());
    const std::string_view name = pair.substr(0, equals);
    const std::string_view value = pair.substr(std::min(equals + 1, pair.size()));
    if (name == "workspace_id" && IsId(value)) {
      query.workspace_id = value;
    } else if (name == "limit" && with_limit) {
      const auto [rest, error] =
          std::from_chars(value.data(), value.data() + value.size(), query.limit);
      if (error != std::errc() || rest != value.data() + value.size() || query.limit < 1) {
        return BadRequest("limit must be a number above 0.", "limit");
      }
    } else {
      return BadRequest("Unknown query parameter, or its value is not valid.",
                        std::string(name.substr(0, 64)));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return query;
}

// The request_id of the body, or a random one: the service client may retry the call.
std::string RequestId(Fields& fields) {
  std::string id = fields.Text("request_id");
  return id.empty() ? Id::New().ToHex() : id;
}

template <typename Limits>
void ReadLimits(Fields& outer, Limits& into) {
  Fields limits(outer.Member("limits"), "limits",
                {"requests_per_minute", "tokens_per_minute", "concurrent_requests"});
  into.set_requests_per_minute(limits.Number("requests_per_minute"));
  into.set_tokens_per_minute(limits.Number("tokens_per_minute"));
  into.set_concurrent_requests(limits.Number("concurrent_requests"));
  outer.Merge(limits);
}

template <typename Message>
Result<AdminCall> Finished(const Fields& fields, Message message) {
  if (fields.problem()) return Fail{*fields.problem()};
  return AdminCall(std::move(message));
}

Result<AdminCall> CreateWorkspace(json::Value body) {
  Fields fields(body, "", {"workspace_id", "name", "limits", "request_id"});
  auth::v1::CreateWorkspaceRequest message;
  message.set_request_id(RequestId(fields));
  message.set_workspace_id(fields.Text("workspace_id"));
  message.set_name(fields.Text("name"));
  ReadLimits(fields, *message.mutable_limits());
  message.set_actor(std::string(kActor));
  return Finished(fields, std::move(message));
}

Result<AdminCall> CreateKey(json::Value body) {
  Fields fields(body, "",
                {"workspace_id", "name", "expires_at", "allowed_models", "limits", "request_id"});
  auth::v1::CreateKeyRequest message;
  message.set_request_id(RequestId(fields));
  message.set_workspace_id(fields.Text("workspace_id"));
  if (message.workspace_id().empty()) fields.Refuse("workspace_id", "is required.");
  message.set_name(fields.Text("name"));
  message.set_expires_at_us(fields.Time("expires_at"));
  for (const std::string& model : fields.Texts("allowed_models")) {
    message.add_allowed_models(model);
  }
  ReadLimits(fields, *message.mutable_limits());
  message.set_actor(std::string(kActor));
  return Finished(fields, std::move(message));
}

Result<AdminCall> SetKeyState(json::Value body, std::string_view key_id, auth::v1::KeyState state) {
  Fields fields(body, "", {"reason", "request_id"});
  auth::v1::SetKeyStateRequest message;
  message.set_request_id(RequestId(fields));
  message.set_key_id(std::string(key_id));
  message.set_state(state);
  message.set_reason(fields.Text("reason"));
  message.set_actor(std::string(kActor));
  return Finished(fields, std::move(message));
}

Result<AdminCall> AddCredit(json::Value body, std::string_view workspace_id) {
  Fields fields(body, "", {"amount_usd", "granted", "reason", "request_id"});
  billing::v1::AddCreditRequest message;
  message.set_request_id(RequestId(fields));
  message.set_workspace_id(std::string(workspace_id));
  const auto amount = fields.Usd("amount_usd");
  if (amount.value_or(0) <= 0)
    fields.Refuse("amount_usd", "must be an amount above 0, like \"12.50\".");
  message.set_amount_nano_usd(amount.value_or(0));
  message.set_granted(fields.Flag("granted"));
  message.set_reason(fields.Text("reason"));
  message.set_actor(std::string(kActor));
  return Finished(fields, std::move(message));
}

Result<AdminCall> SetCap(json::Value body, std::string_view workspace_id) {
  Fields fields(body, "", {"cap_usd", "request_id"});
  billing::v1::SetCapRequest message;
  message.set_request_id(RequestId(fields));
  message.set_workspace_id(std::string(workspace_id));
  // Null removes the cap. An absent member must not.
  if (!fields.Has("cap_usd")) fields.Refuse("cap_usd", "is required; null removes the cap.");
  if (const auto cap = fields.Usd("cap_usd")) {
    if (*cap < 0) fields.Refuse("cap_usd", "must not be negative.");
    message.set_cap_nano_usd(*cap);
  }
  message.set_actor(std::string(kActor));
  return Finished(fields, std::move(message));
}

Result<AdminCall> VerifyLedger(json::Value body) {
  Fields fields(body, "", {"workspace_id"});
  billing::v1::VerifyLedgerRequest message;
  message.set_workspace_id(fields.Text("workspace_id"));
  return Finished(fields, std::move(message));
}

Fail<Error> NotFound() {
  return FailWith(ErrorId::kNotFound, "There is no such path in the admin API.");
}

Result<AdminCall> ParseGet(const std::vector<std::string_view>& parts, std::string_view query) {
  const std::string_view first = parts[0];
  const bool alone = parts.size() == 1;
  if (alone && (first == "keys" || first == "audit")) {
    auto parsed = ParseQuery(query, first == "audit");
    if (!parsed) return Fail{parsed.error()};
    if (first == "keys") {
      auth::v1::ListKeysRequest message;
      message.set_workspace_id(parsed->workspace_id);
      return AdminCall(std::move(message));
    }
    auth::v1::ListAuditEventsRequest message;
    message.set_workspace_id(parsed->workspace_id);
    message.set_limit(parsed->limit);
    return AdminCall(std::move(message));
  }
  if (!query.empty()) return BadRequest("This path takes no query parameters.", "");
  if (alone && first == "workspaces") return AdminCall(auth::v1::ListWorkspacesRequest());
  if (alone && first == "catalog") return AdminCall(catalog::v1::GetCatalogRequest());
  if (first == "workspaces" && parts.size() == 3 && IsId(parts[1]) && parts[2] == "balance") {
    billing::v1::GetBalanceRequest message;
    message.set_workspace_id(std::string(parts[1]));
    return AdminCall(std::move(message));
  }
  return NotFound();
}

Result<AdminCall> ParsePost(const std::vector<std::string_view>& parts, json::Value body) {
  const std::string_view first = parts[0];
  if (parts.size() == 1 && first == "workspaces") return CreateWorkspace(body);
  if (parts.size() == 1 && first == "keys") return CreateKey(body);
  if (parts.size() == 2 && first == "ledger" && parts[1] == "verify") return VerifyLedger(body);
  if (parts.size() != 3 || !IsId(parts[1])) return NotFound();
  if (first == "workspaces" && parts[2] == "credit") return AddCredit(body, parts[1]);
  if (first != "keys") return NotFound();
  if (parts[2] == "disable") return SetKeyState(body, parts[1], auth::v1::KEY_STATE_DISABLED);
  if (parts[2] == "enable") return SetKeyState(body, parts[1], auth::v1::KEY_STATE_ACTIVE);
  if (parts[2] == "revoke") return SetKeyState(body, parts[1], auth::v1::KEY_STATE_REVOKED);
  return NotFound();
}

}  // namespace

Result<AdminCall> ParseAdminCall(const http::HttpRequest& request) {
  const auto parts = SplitPath(request.path);
  if (request.method == "GET") return ParseGet(parts, request.query);
  if (request.method != "POST" && request.method != "PUT") return NotFound();
  if (!request.query.empty()) return BadRequest("This path takes no query parameters.", "");
  // An empty body counts as an empty object: some calls have no fields.
  const std::string_view text = request.body.empty() ? std::string_view("{}") : request.body;
  const auto document = json::Document::ParseView(text);
  if (!document) return BadRequest("The body is not valid JSON: " + document.error().message);
  if (request.method == "POST") return ParsePost(parts, document->root());
  if (parts.size() == 3 && parts[0] == "workspaces" && IsId(parts[1]) && parts[2] == "cap") {
    return SetCap(document->root(), parts[1]);
  }
  return NotFound();
}

}  // namespace tollgate::dashboard
