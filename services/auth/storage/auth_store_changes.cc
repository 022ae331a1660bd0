// Writes changes: each with its version, its audit event and the response for a repeated call in
// one transaction.
#include "common/admin/requests.h"
#include "common/base/crypto.h"
#include "common/base/try.h"
#include "services/auth/storage/audit_log.h"
#include "services/auth/storage/auth_store.h"

namespace tollgate::auth {

using sql::SqlResult;

namespace {

constexpr int kCommitAttempts = 3;
// Much longer than a client retries.
constexpr int64_t kKeepResponsesUs = int64_t{7} * 24 * 3600 * 1'000'000;

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
    // The COMMIT may have taken effect. If it did, the next attempt finds the stored response.
    if (done.error().kind != sql::ErrorKind::kCommitUnknown || attempt == kCommitAttempts) {
      return Fail{admin::FromError(ToError(done.error()))};
    }
  }
}

SqlResult<AuthStore::Answer> AuthStore::ApplyOnce(Change& change, const std::string& request_id,
                                                  const std::string& content, const Body& body) {
  sql::Connection& sql = change.connection;
  TRY(sql.Query("SELECT version FROM auth_head WHERE id = 1 FOR UPDATE", {},
                [&](const sql::Row& row) { change.version = row.Int(0); }));
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
  TRY(auto response, body(change));
  TRY(WithoutValue(sql.Execute(
      "INSERT INTO admin_request (request_id, content, answer, at_us) VALUES ($1, $2, $3, $4)",
      {request_id, sql::Param::Blob(content), sql::Param::Blob(response), change.now_us})));
  TRY(WithoutValue(sql.Execute("DELETE FROM admin_request WHERE at_us < $1",
                               {change.now_us - kKeepResponsesUs})));
  if (change.version != before) {
    TRY(WithoutValue(
        sql.Execute("UPDATE auth_head SET version = $1 WHERE id = 1", {change.version})));
  }
  return Answer{std::move(response), false};
}

}  // namespace tollgate::auth
