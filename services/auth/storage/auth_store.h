// Workspaces, keys and the audit log in SQLite or PostgreSQL. Thread-safe; every call blocks on the
// database, so only storage threads may make one. A key is stored as HMAC-SHA-256(pepper,
// SHA-256(key)), never in clear text (decision 15). A change, its version, its audit event and its
// response are written in one transaction.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/admin/failure.h"
#include "common/base/clock.h"
#include "common/error/error.h"
#include "common/sql/sql.h"
#include "services/auth/domain/limit_set.h"
#include "services/auth/storage/audit_log.h"
#include "services/auth/storage/key_memory.h"
#include "tollgate/auth/v1/auth.pb.h"

namespace tollgate::auth {

struct StoreOptions {
  sql::Database::Options database;
  std::string pepper;
  std::string brand;
  // Keys that were made with one of them are found, and move to the pepper when they are.
  std::vector<std::string> retired_peppers = {};
};

class AuthStore {
 public:
  AuthStore(std::unique_ptr<sql::Database> database, StoreOptions options, const Clock& clock);

  // Opens the database and migrates its schema.
  static Result<std::unique_ptr<AuthStore>> Open(StoreOptions options, const Clock& clock);

  // The key with this SHA-256 digest; found = false when there is none. With the version of the
  // latest change in the same snapshot.
  Result<v1::VerifyKeyResponse> VerifyKey(const v1::VerifyKeyRequest& request);

  // What VerifyKey has found, for an outage of the database.
  KeyMemory& memory() { return memory_; }
  // While true, VerifyKey answers from memory and does not ask the database.
  void set_vouching(bool vouching) { vouching_ = vouching; }
  // While true, VerifyKey answers from memory when the database that it asks cannot be reached.
  void set_may_vouch(bool may_vouch) { may_vouch_ = may_vouch; }
  // The answer without the database; nullopt while it is to be asked. Never blocks.
  std::optional<Result<v1::VerifyKeyResponse>> Vouch(const v1::VerifyKeyRequest& request) const;

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
  const StoreOptions& options() const { return options_; }
  sql::Database& database() { return *database_; }
  const Clock& clock() const { return clock_; }
  // Keys that were made with a retired pepper and have not been used since.
  Result<int64_t> KeysOfRetiredPeppers();

  // Limits by model, and plans. A change reaches gateways as a change of every key that it
  // concerns.
  struct WorkspaceLimits {
    std::string plan;
    LimitValues limits;  // the workspace's own, as its model_limits
    ModelLimits model_limits;
    LimitSet of_plan;
    bool plan_shadow = false;  // refusals by the plan's limits are only counted
  };
  struct Plan {
    std::string id;
    LimitSet limits;
    bool shadow = false;
  };
  struct LimitChange {
    std::string request_id;  // of this actor; may be empty
    std::string content;     // of the request: a repetition with another one is refused
    std::string actor;
    std::string address;  // of the client; may be empty
  };
  Result<WorkspaceLimits> GetLimits(const std::string& workspace_id);
  Result<ModelLimits> GetKeyModelLimits(const std::string& workspace_id, const std::string& key_id);
  // A key, and those that work after one of them, newest first, with the limits that apply.
  struct KeyPlace {
    int64_t created_at_us = INT64_MAX;
    std::string key_id;
  };
  Result<v1::Key> KeyWithLimits(const std::string& workspace_id, const std::string& key_id);
  Result<std::vector<v1::Key>> KeysWithLimits(const std::string& workspace_id,
                                              const KeyPlace& after, int limit);
  Result<Plan> GetPlan(const std::string& plan_id);
  // By their ids, those after this one.
  Result<std::vector<Plan>> ListPlans(int limit, const std::string& after = "");
  // edit changes what is stored, or fails; it may run several times.
  template <typename T>
  using Edit = std::function<Result<void>(T&)>;
  admin::AdminResult<void> UpdateLimits(LimitChange change, const std::string& workspace_id,
                                        const Edit<WorkspaceLimits>& edit);
  admin::AdminResult<void> UpdateKeyModelLimits(LimitChange change, const std::string& workspace_id,
                                                const std::string& key_id,
                                                const Edit<ModelLimits>& edit);
  // Creates a plan that does not exist.
  admin::AdminResult<void> UpdatePlan(LimitChange change, const std::string& plan_id,
                                      const Edit<Plan>& edit);

  // Verifies the whole audit log: the number of events, or the first violation.
  BasicResult<int64_t, std::string> VerifyAudit();

  // A change within its transaction, which holds the lock of the single row that orders all
  // changes: versions and audit sequences have no gaps and become visible in order.
  struct Change {
    sql::Connection& connection;
    // The version of the latest change; a key that changes gets the next one.
    int64_t version = 0;
    int64_t now_us = 0;
    // When set, the transaction is rolled back and the call fails with it.
    std::optional<Error> refusal;
    std::optional<admin::Failure> failure;

    // Sets refusal or failure; returns the failure that ends the body.
    sql::SqlResult<std::string> Refuse(Error error);
    sql::SqlResult<std::string> Refuse(admin::Failure failed);
    // Appends to the audit log; the time is that of the change.
    sql::SqlResult<void> Audit(AuditRecord record);
  };
  // Returns the answer that is stored for a repeated call.
  using Body = std::function<sql::SqlResult<std::string>(Change&)>;

  // Runs body once per scope and request_id and keeps the answer for seven days. A repeated call
  // with the same content gets it again; with another content, ALREADY_EXISTS.
  struct Once {
    std::string scope;  // who asks: ids of one caller do not meet those of another
    std::string request_id;
    std::string content;
  };
  struct Answer {
    std::string bytes;
    bool repeated = false;
  };
  admin::AdminResult<Answer> ChangeOnce(const Once& once, const Body& body);

  // A secret with what is stored of it.
  struct Stored {
    std::string lookup;
    std::string pepper_id;
    uint64_t filter_tag = 0;
  };
  Stored StoredOf(std::string_view digest) const;
  // The lookups of a digest under each pepper, the current one first.
  std::vector<std::string> LookupsOf(std::string_view digest) const;

  // Runs body with a connection, and retries when the connection was lost: after a restart of the
  // database every idle connection is. body must reset its output at the start of each attempt.
  Result<void> Read(const std::function<sql::SqlResult<void>(sql::Connection&)>& body);

 private:
  // The same for what gateways wait for: fails after three seconds without an answer, so that a
  // database that stands still is noticed while their keys are still valid.
  Result<void> ReadSoon(const std::function<sql::SqlResult<void>(sql::Connection&)>& body);
  sql::SqlResult<Answer> ApplyOnce(Change& change, const std::string& request_id,
                                   const std::string& content, const Body& body);
  // Gives the keys that the condition names, with "?" for the parameter, new versions, so that
  // gateways get them again.
  static sql::SqlResult<void> Touch(Change& change, const std::string& condition,
                                    const std::string& parameter);
  admin::AdminResult<void> ApplyLimits(const LimitChange& change, std::string_view kind,
                                       const std::function<sql::SqlResult<void>(Change&)>& body);
  // The key from memory, as of the version that is said; nullopt: it is not there.
  std::optional<v1::VerifyKeyResponse> Remembered(const v1::VerifyKeyRequest& request) const;
  // Stores what the current pepper makes of the digest. Whether it succeeds does not matter: the
  // next lookup of the key tries again.
  void MoveToPepper(const std::string& key_id, std::string_view digest);

  std::unique_ptr<sql::Database> database_;
  const StoreOptions options_;
  const std::string pepper_id_;
  // Derived from the pepper, so that the tags in the database alone are of no use.
  const std::string tag_key_;
  const Clock& clock_;
  KeyMemory memory_;
  std::atomic<bool> vouching_{false};
  std::atomic<bool> may_vouch_{false};
};

}  // namespace tollgate::auth
