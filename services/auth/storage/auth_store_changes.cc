// The mutations of AuthStore. Each writes the change, its version, its audit event and the response
// for a repeated call in one transaction.
#include "common/admin/requests.h"
#include "common/base/crypto.h"
#include "common/base/id.h"
#include "common/keys/key_filter.h"
#include "common/keys/key_format.h"
#include "common/money/money.h"
#include "services/auth/domain/rules.h"
#include "services/auth/storage/audit_log.h"
#include "services/auth/storage/auth_store.h"
#include "services/auth/storage/key_rows.h"
#include "services/auth/storage/rows.h"

namespace tollgate::auth {

using sql::SqlResult;

namespace {

constexpr int kCommitAttempts = 3;
// Far longer than a client retries.
constexpr int64_t kKeepResponsesUs = int64_t{7} * 24 * 3600 * 1'000'000;

LimitValues ToValues(const v1::Limits& limits) {
  return {.requests_per_minute = limits.requests_per_minute(),
          .tokens_per_minute = limits.tokens_per_minute(),
          .concurrent_requests = limits.concurrent_requests()};
}

std::string LimitsText(const v1::Limits& limits) {
  return "requests/min " + std::to_string(limits.requests_per_minute()) + ", tokens/min " +
         std::to_string(limits.tokens_per_minute()) + ", concurrent " +
         std::to_string(limits.concurrent_requests());
}

// The error of the first check that failed.
Result<void> FirstFailure(std::initializer_list<Result<void>> checks) {
  for (const Result<void>& check : checks) {
    if (!check) return Fail{check.error()};
  }
  return {};
}

template <typename Message>
Result<Message> Parse(const Result<std::string>& bytes) {
  if (!bytes) return Fail{bytes.error()};
  Message message;
  if (!message.ParseFromString(*bytes)) return Internal("a stored response cannot be parsed");
  return message;
}

SqlResult<void> WithoutCount(SqlResult<int64_t> result) {
  if (!result) return Fail{std::move(result).error()};
  return {};
}

// Without an id a COMMIT with unknown outcome could not be retried.
template <typename Request>
void EnsureRequestId(Request& request) {
  if (request.request_id().empty()) request.set_request_id(Id::New().ToHex());
}

std::string QuotaText(const v1::Key& key) {
  if (!key.has_monthly_quota_nano_usd()) return "no quota";
  return "quota " + NanoToDecimalUsd(key.monthly_quota_nano_usd()) + " USD/month";
}

}  // namespace

SqlResult<std::string> AuthStore::Change::Refuse(Error error) {
  refusal = std::move(error);
  return Fail{sql::SqlError{.kind = sql::ErrorKind::kOther, .message = "refused"}};
}

SqlResult<std::string> AuthStore::Change::Refuse(admin::Failure failed) {
  failure = std::move(failed);
  return Fail{sql::SqlError{.kind = sql::ErrorKind::kOther, .message = "refused"}};
}

SqlResult<void> AuthStore::Change::Audit(AuditRecord record) {
  record.at_us = now_us;
  return AppendAudit(connection, std::move(record));
}

Result<std::string> AuthStore::Apply(const std::string& request_id, std::string_view kind,
                                     const google::protobuf::MessageLite& request,
                                     const Body& body) {
  auto answer = ChangeOnce({.scope = "",
                            .request_id = request_id,
                            .content = std::string(kind) + '\n' + admin::ContentOf(request)},
                           body);
  if (answer) return std::move(answer->bytes);
  const admin::Failure& failure = answer.error();
  if (failure.error) return Fail{*failure.error};
  if (failure.reason == "REQUEST_ID_REUSED") {
    return BadRequest("This request_id was used for a different request.", "request_id");
  }
  return Internal(failure.message);
}

admin::AdminResult<AuthStore::Answer> AuthStore::ChangeOnce(const Once& once, const Body& body) {
  const std::string id = once.scope.empty() ? once.request_id : once.scope + '\n' + once.request_id;
  const std::string content = Sha256(once.content);
  for (int attempt = 1;; ++attempt) {
    Answer answer;
    std::optional<Error> refusal;
    std::optional<admin::Failure> failure;
    const auto done =
        database_->Transact(sql::TxMode::kWrite, [&](sql::Connection& sql) -> SqlResult<void> {
          Change change{.connection = sql};
          auto applied = ApplyOnce(change, id, content, body);
          refusal = std::move(change.refusal);
          failure = std::move(change.failure);
          if (!applied) return Fail{applied.error()};
          answer = std::move(*applied);
          return {};
        });
    if (done) return answer;
    if (failure) return Fail{std::move(*failure)};
    if (refusal) return Fail{admin::FromError(*refusal)};
    // Unknown whether the COMMIT took effect: if it did, the next attempt finds the stored
    // response.
    if (done.error().kind != sql::ErrorKind::kCommitUnknown || attempt == kCommitAttempts) {
      return Fail{admin::FromError(ToError(done.error()))};
    }
  }
}

SqlResult<AuthStore::Answer> AuthStore::ApplyOnce(Change& change, const std::string& request_id,
                                                  const std::string& content, const Body& body) {
  sql::Connection& sql = change.connection;
  auto locked = sql.Query("SELECT version FROM auth_head WHERE id = 1 FOR UPDATE", {},
                          [&](const sql::Row& row) { change.version = row.Int(0); });
  if (!locked) return Fail{locked.error()};
  change.now_us = clock_.WallUs();

  std::optional<std::string> stored_content;
  std::string stored_response;
  auto read = sql.Query("SELECT content, answer FROM admin_request WHERE request_id = $1",
                        {request_id}, [&](const sql::Row& row) {
                          stored_content = row.Text(0);
                          stored_response = row.Text(1);
                        });
  if (!read) return Fail{read.error()};
  if (stored_content) {
    if (*stored_content == content) return Answer{std::move(stored_response), true};
    auto refused = change.Refuse(admin::RequestIdReused().error);
    return Fail{refused.error()};
  }

  const int64_t before = change.version;
  auto response = body(change);
  if (!response) return Fail{response.error()};
  auto stored = WithoutCount(sql.Execute(
      "INSERT INTO admin_request (request_id, content, answer, at_us) VALUES ($1, $2, $3, $4)",
      {request_id, sql::Param::Blob(content), sql::Param::Blob(*response), change.now_us}));
  if (!stored) return Fail{stored.error()};
  auto pruned = WithoutCount(sql.Execute("DELETE FROM admin_request WHERE at_us < $1",
                                         {change.now_us - kKeepResponsesUs}));
  if (!pruned) return Fail{pruned.error()};
  if (change.version != before) {
    auto advanced = WithoutCount(
        sql.Execute("UPDATE auth_head SET version = $1 WHERE id = 1", {change.version}));
    if (!advanced) return Fail{advanced.error()};
  }
  return Answer{std::move(*response), false};
}

Result<v1::CreateWorkspaceResponse> AuthStore::CreateWorkspace(v1::CreateWorkspaceRequest request) {
  EnsureRequestId(request);
  // Without the defaults below: the random id must not make a repeated request look like another.
  const v1::CreateWorkspaceRequest original = request;
  if (request.workspace_id().empty()) {
    request.set_workspace_id("ws-" + HexEncode(RandomBytes(6)));
  }
  if (request.name().empty()) request.set_name(request.workspace_id());
  const auto checked =
      FirstFailure({CheckRequestId(request.request_id()), CheckWorkspaceId(request.workspace_id()),
                    CheckName(request.name()), CheckLimits(ToValues(request.limits())),
                    CheckRemark(request.actor(), "actor")});
  if (!checked) return Fail{checked.error()};
  return Parse<v1::CreateWorkspaceResponse>(Apply(
      request.request_id(), "CreateWorkspace", original,
      [&](Change& change) -> SqlResult<std::string> {
        const v1::Limits& limits = request.limits();
        auto added = change.connection.Execute(
            "INSERT INTO workspace (workspace_id, name, requests_per_minute, tokens_per_minute, "
            "concurrent_requests, created_at_us) VALUES ($1, $2, $3, $4, $5, $6) "
            "ON CONFLICT (workspace_id) DO NOTHING",
            {request.workspace_id(), request.name(), limits.requests_per_minute(),
             limits.tokens_per_minute(), limits.concurrent_requests(), change.now_us});
        if (!added) return Fail{added.error()};
        if (*added == 0) {
          return change.Refuse(
              BadRequest("Workspace \"" + request.workspace_id() + "\" already exists.",
                         "workspace_id")
                  .error);
        }
        ++change.version;
        auto audited = change.Audit({.actor = request.actor(),
                                     .action = "workspace.create",
                                     .workspace_id = request.workspace_id(),
                                     .subject = request.workspace_id(),
                                     .detail = LimitsText(limits)});
        if (!audited) return Fail{audited.error()};
        v1::CreateWorkspaceResponse response;
        v1::Workspace& workspace = *response.mutable_workspace();
        workspace.set_workspace_id(request.workspace_id());
        workspace.set_name(request.name());
        *workspace.mutable_limits() = limits;
        workspace.set_created_at_us(change.now_us);
        return response.SerializeAsString();
      }));
}

Result<v1::CreateKeyResponse> AuthStore::CreateKey(v1::CreateKeyRequest request) {
  EnsureRequestId(request);
  const std::vector<std::string> models(request.allowed_models().begin(),
                                        request.allowed_models().end());
  const auto checked =
      FirstFailure({CheckRequestId(request.request_id()), CheckWorkspaceId(request.workspace_id()),
                    CheckName(request.name()), CheckLimits(ToValues(request.limits())),
                    CheckAllowedModels(models), CheckQuota(request.monthly_quota_nano_usd()),
                    CheckRemark(request.actor(), "actor")});
  if (!checked) return Fail{checked.error()};
  const MadeKey made = MakeKey(options_.brand);
  const std::string digest = KeyDigest(made.text);
  const Stored stored = StoredOf(digest);
  const auto insert = [&](Change& change) -> SqlResult<std::string> {
    // Not with the other checks: a repeated request gets its stored response even after the expiry.
    if (auto ahead = CheckExpiry(request.expires_at_us(), change.now_us); !ahead) {
      return change.Refuse(ahead.error());
    }
    std::optional<v1::Workspace> workspace;
    auto read = change.connection.Query(
        std::string(kSelectWorkspaces) + " WHERE workspace_id = $1", {request.workspace_id()},
        [&](const sql::Row& row) { workspace = ReadWorkspace(row); });
    if (!read) return Fail{read.error()};
    if (!workspace) {
      return change.Refuse(
          Error{.id = ErrorId::kNotFound,
                .message = "There is no workspace \"" + request.workspace_id() + "\".",
                .param = "workspace_id"});
    }
    int64_t state = 0;
    auto read_state = change.connection.Query("SELECT state FROM workspace WHERE workspace_id = $1",
                                              {request.workspace_id()},
                                              [&](const sql::Row& row) { state = row.Int(0); });
    if (!read_state) return Fail{read_state.error()};
    if (state == kWorkspaceClosed) {
      return change.Refuse(
          BadRequest("The workspace \"" + request.workspace_id() + "\" is closed: it gets no keys.",
                     "workspace_id")
              .error);
    }
    v1::CreateKeyResponse response;
    v1::Key& key = *response.mutable_key();
    key.set_key_id(made.key_id);
    key.set_workspace_id(request.workspace_id());
    key.set_name(request.name());
    key.set_state(v1::KEY_STATE_ACTIVE);
    key.set_expires_at_us(request.expires_at_us());
    *key.mutable_allowed_models() = request.allowed_models();
    *key.mutable_key_limits() = request.limits();
    if (request.has_monthly_quota_nano_usd()) {
      key.set_monthly_quota_nano_usd(request.monthly_quota_nano_usd());
    }
    *key.mutable_workspace_limits() = workspace->limits();
    key.set_version(++change.version);
    key.set_created_at_us(change.now_us);
    key.set_changed_at_us(change.now_us);
    key.set_last_four(made.last_four);
    auto added = InsertKey(change.connection, {.key = key, .created_by = request.actor()}, stored);
    if (!added) return Fail{added.error()};
    auto audited = change.Audit({.actor = request.actor(),
                                 .action = "key.create",
                                 .workspace_id = key.workspace_id(),
                                 .subject = key.key_id(),
                                 .detail = LimitsText(key.key_limits()) + ", " + QuotaText(key)});
    if (!audited) return Fail{audited.error()};
    return response.SerializeAsString();
  };
  auto response =
      Parse<v1::CreateKeyResponse>(Apply(request.request_id(), "CreateKey", request, insert));
  if (!response) return response;
  if (response->key().key_id() != made.key_id) {
    return BadRequest("This request already created the key " + response->key().key_id() +
                          ". Its secret was shown then and cannot be shown again: revoke it and "
                          "create another key with a new request_id.",
                      "request_id");
  }
  response->set_secret(made.text);
  return response;
}

SqlResult<void> AuthStore::FindKey(Change& change, const std::string& key_id, v1::Key& key) const {
  auto read = change.connection.Query(std::string(kSelectKeys) + " WHERE k.key_id = $1", {key_id},
                                      [&](const sql::Row& row) { key = ReadKey(row); });
  if (!read) return Fail{read.error()};
  if (!key.key_id().empty()) return {};
  auto refused = change.Refuse(
      Error{.id = ErrorId::kNotFound,
            .message = IsKeyId(key_id) ? "There is no key \"" + key_id + "\"."
                                       : "A key id is 12 letters and digits, the part after sk-" +
                                             options_.brand + "-.",
            .param = "key_id"});
  return Fail{refused.error()};
}

Result<v1::SetKeyStateResponse> AuthStore::SetKeyState(v1::SetKeyStateRequest request) {
  EnsureRequestId(request);
  const auto checked =
      FirstFailure({CheckRequestId(request.request_id()), CheckRemark(request.actor(), "actor"),
                    CheckRemark(request.reason(), "reason")});
  if (!checked) return Fail{checked.error()};
  if (request.state() != v1::KEY_STATE_ACTIVE && request.state() != v1::KEY_STATE_DISABLED &&
      request.state() != v1::KEY_STATE_REVOKED) {
    return BadRequest("The new state is active, disabled or revoked.", "state");
  }
  return Parse<v1::SetKeyStateResponse>(Apply(
      request.request_id(), "SetKeyState", request, [&](Change& change) -> SqlResult<std::string> {
        v1::SetKeyStateResponse response;
        if (auto found = FindKey(change, request.key_id(), *response.mutable_key()); !found) {
          return Fail{found.error()};
        }
        v1::Key& key = *response.mutable_key();
        const auto from = static_cast<State>(key.state());
        const auto to = static_cast<State>(request.state());
        if (auto allowed = CheckTransition(from, to); !allowed) {
          return change.Refuse(allowed.error());
        }
        if (from == to) return response.SerializeAsString();
        key.set_state(request.state());
        key.set_version(++change.version);
        auto updated = change.connection.Execute(
            "UPDATE virtual_key SET state = $1, version = $2, updated_at_us = $3, "
            "state_reason = $4 WHERE key_id = $5",
            {static_cast<int64_t>(key.state()), key.version(), change.now_us, request.reason(),
             key.key_id()});
        if (!updated) return Fail{updated.error()};
        auto audited = change.Audit({.actor = request.actor(),
                                     .action = "key." + std::string(StateName(to)),
                                     .workspace_id = key.workspace_id(),
                                     .subject = key.key_id(),
                                     .detail = request.reason()});
        if (!audited) return Fail{audited.error()};
        return response.SerializeAsString();
      }));
}

Result<v1::SetKeyQuotaResponse> AuthStore::SetKeyQuota(v1::SetKeyQuotaRequest request) {
  EnsureRequestId(request);
  const auto checked = FirstFailure({CheckRequestId(request.request_id()),
                                     CheckQuota(request.monthly_quota_nano_usd()),
                                     CheckRemark(request.actor(), "actor")});
  if (!checked) return Fail{checked.error()};
  return Parse<v1::SetKeyQuotaResponse>(Apply(
      request.request_id(), "SetKeyQuota", request, [&](Change& change) -> SqlResult<std::string> {
        v1::SetKeyQuotaResponse response;
        v1::Key& key = *response.mutable_key();
        if (auto found = FindKey(change, request.key_id(), key); !found) {
          return Fail{found.error()};
        }
        std::optional<int64_t> quota;
        key.clear_monthly_quota_nano_usd();
        if (request.has_monthly_quota_nano_usd()) {
          quota = request.monthly_quota_nano_usd();
          key.set_monthly_quota_nano_usd(*quota);
        }
        key.set_version(++change.version);
        auto updated = change.connection.Execute(
            "UPDATE virtual_key SET monthly_quota = $1, version = $2, updated_at_us = $3 "
            "WHERE key_id = $4",
            {quota, key.version(), change.now_us, key.key_id()});
        if (!updated) return Fail{updated.error()};
        auto audited = change.Audit({.actor = request.actor(),
                                     .action = "key.quota",
                                     .workspace_id = key.workspace_id(),
                                     .subject = key.key_id(),
                                     .detail = QuotaText(key)});
        if (!audited) return Fail{audited.error()};
        return response.SerializeAsString();
      }));
}

}  // namespace tollgate::auth
