// Workspaces, keys and the audit log in SQLite or PostgreSQL. Thread-safe; every call blocks on the
// database, so only storage threads may make one. A key is stored as HMAC-SHA-256(pepper,
// SHA-256(key)), never in clear text (decision 15). A change, its version, its audit event and its
// response are written in one transaction.
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
  AuthStore(std::unique_ptr<sql::Database> database, StoreOptions options, const Clock& clock);

  // Opens the database and migrates its schema.
  static Result<std::unique_ptr<AuthStore>> Open(StoreOptions options, const Clock& clock);

  // The key with this SHA-256 digest; found = false when there is none. With the version of the
  // latest change in the same snapshot.
  Result<v1::VerifyKeyResponse> VerifyKey(const v1::VerifyKeyRequest& request);

  // The version of the latest change.
  Result<int64_t> Version();
  // Keys that changed after the version, oldest change first, at most `limit` of them.
  Result<std::vector<v1::KeyChange>> ChangedAfter(int64_t version, int limit);

  // For the filter of live keys (ADR 0013). A key gets its tag when it is created; one from before
  // there were tags, when it is looked up.
  struct LiveKey {
    std::string key_id;
    uint64_t filter_tag = 0;  // 0: none yet
  };
  // Keys that are not revoked, by id, from the one after this id on, at most `limit` of them.
  Result<std::vector<LiveKey>> LiveKeysAfter(const std::string& key_id, int limit);
  const std::string& tag_key() const { return tag_key_; }

  // The admin calls. A change may be repeated with the same request_id: it is applied once. A
  // request without an id gets a random one, so that a COMMIT with unknown outcome can be retried.
  Result<v1::CreateWorkspaceResponse> CreateWorkspace(v1::CreateWorkspaceRequest request);
  Result<v1::ListWorkspacesResponse> ListWorkspaces();
  Result<v1::CreateKeyResponse> CreateKey(v1::CreateKeyRequest request);
  Result<v1::ListKeysResponse> ListKeys(const v1::ListKeysRequest& request);
  Result<v1::SetKeyStateResponse> SetKeyState(v1::SetKeyStateRequest request);
  Result<v1::SetKeyQuotaResponse> SetKeyQuota(v1::SetKeyQuotaRequest request);
  Result<v1::ListAuditEventsResponse> ListAuditEvents(const v1::ListAuditEventsRequest& request);

  // For what else lives in the same database (people_store.h). Valid as long as this.
  sql::Database& database() { return *database_; }

  // Verifies the whole audit log: the number of events, or the first violation.
  BasicResult<int64_t, std::string> VerifyAudit();

 private:
  // The single row that orders all changes. Each change locks it, so versions and audit sequences
  // have no gaps and become visible in order.
  struct Head {
    int64_t version = 0;
    int64_t audit_sequence = 0;
    std::string audit_hash;
  };
  // A change within its transaction.
  struct Change {
    sql::Connection& connection;
    Head head;
    int64_t now_us = 0;
    // When set, the transaction is rolled back and the call fails with this error.
    std::optional<Error> refusal;

    // Sets refusal; returns the failure that ends the body.
    sql::SqlResult<std::string> Refuse(Error error);
    sql::SqlResult<void> Audit(AuditRecord record);
  };
  // Applies body once per request_id and stores the serialized response that it returns. A repeated
  // call with the same content gets the stored response.
  using Body = std::function<sql::SqlResult<std::string>(Change&)>;
  Result<std::string> Apply(const std::string& request_id, std::string_view kind,
                            const google::protobuf::MessageLite& request, const Body& body);
  sql::SqlResult<std::string> ApplyOnce(Change& change, const std::string& request_id,
                                        const std::string& content, const Body& body);
  // Reads the key, or refuses the change: there is none with this id.
  sql::SqlResult<void> FindKey(Change& change, const std::string& key_id, v1::Key& key) const;
  std::string Lookup(std::string_view digest) const;
  // Whether it succeeds does not matter: the next lookup of the key tries again.
  void AddTag(const std::string& key_id, std::string_view digest);
  // Runs body with a connection, and retries when the connection was lost: after a restart of the
  // database every idle connection is. body must reset its output at the start of each attempt.
  Result<void> Read(const std::function<sql::SqlResult<void>(sql::Connection&)>& body);

  std::unique_ptr<sql::Database> database_;
  const StoreOptions options_;
  // Derived from the pepper, so that the tags in the database alone are of no use.
  const std::string tag_key_;
  const Clock& clock_;
};

}  // namespace tollgate::auth
