// Workspaces, keys and the audit log in SQL (SQLite or PostgreSQL). Every call blocks: storage
// threads only. Thread-safe. Keys are stored as HMAC-SHA-256(pepper, SHA-256(key)), never
// themselves (decisions.md 15). Every change, its version and its audit event are one transaction.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/error/error.h"
#include "common/sql/sql.h"
#include "services/auth/domain/audit.h"
#include "tollgate/auth/v1/auth.pb.h"

namespace tollgate::auth {

struct StoreOptions {
  sql::Database::Options database;
  std::string pepper;
  std::string brand;
};

class AuthStore {
 public:
  AuthStore(std::unique_ptr<sql::Database> database, StoreOptions options, const Clock& clock)
      : database_(std::move(database)), options_(std::move(options)), clock_(clock) {}

  // Opens the database and brings its schema up to date.
  static Result<std::unique_ptr<AuthStore>> Open(StoreOptions options, const Clock& clock);

  // The key with this digest; found = false when there is none.
  Result<v1::VerifyKeyResponse> VerifyKey(const v1::VerifyKeyRequest& request);

  // Version of the newest change.
  Result<int64_t> Version();
  // Keys that changed after the version, oldest change first, at most limit.
  Result<std::vector<v1::Key>> ChangedAfter(int64_t version, int limit);

  // The admin calls; each change is safe to repeat with its request_id. Without one the call gets
  // an id of its own, so that an unclear COMMIT is resolved all the same.
  Result<v1::CreateWorkspaceResponse> CreateWorkspace(v1::CreateWorkspaceRequest request);
  Result<v1::ListWorkspacesResponse> ListWorkspaces();
  Result<v1::CreateKeyResponse> CreateKey(v1::CreateKeyRequest request);
  Result<v1::ListKeysResponse> ListKeys(const v1::ListKeysRequest& request);
  Result<v1::SetKeyStateResponse> SetKeyState(v1::SetKeyStateRequest request);
  Result<v1::ListAuditEventsResponse> ListAuditEvents(const v1::ListAuditEventsRequest& request);

  // Proves the whole audit log; the error says what is wrong first.
  BasicResult<int64_t, std::string> VerifyAudit();

 private:
  // The one row that orders all changes. Locked for the length of a change, so that versions and
  // audit sequences have no gaps and become visible in their order.
  struct Head {
    int64_t version = 0;
    int64_t audit_sequence = 0;
    std::string audit_hash;
  };
  // One change that is being made.
  struct Change {
    sql::Connection& connection;
    Head head;
    int64_t now_us = 0;
    // Set to refuse: the transaction is rolled back and this is the answer.
    std::optional<Error> refusal;

    // Refuses with the error of a failed check; for `return`.
    sql::SqlResult<std::string> Refuse(Error error);
    sql::SqlResult<void> Audit(AuditRecord record);
  };
  // Runs body once for this request_id and keeps the answer that it gives; a repeated call with the
  // same content gets the kept answer. body returns the answer's bytes.
  using Body = std::function<sql::SqlResult<std::string>(Change&)>;
  Result<std::string> Apply(const std::string& request_id, std::string_view kind,
                            const google::protobuf::MessageLite& request, const Body& body);
  sql::SqlResult<std::string> ApplyOnce(Change& change, const std::string& request_id,
                                        const std::string& content, const Body& body);
  std::string Lookup(std::string_view digest) const;
  // Runs body, which must bear being run again, with a connection; again when the connection was
  // lost: after a restart of the database every idle one is. body starts its answer anew each time.
  Result<void> Read(const std::function<sql::SqlResult<void>(sql::Connection&)>& body);

  std::unique_ptr<sql::Database> database_;
  const StoreOptions options_;
  const Clock& clock_;
};

}  // namespace tollgate::auth
