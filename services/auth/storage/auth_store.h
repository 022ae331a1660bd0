// Workspaces, keys and the audit log in SQLite or PostgreSQL. Thread-safe. Every call blocks on the
// database, so only storage threads may call. A key is stored as HMAC-SHA-256(pepper,
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
  // Keys made with one of these are still found, and move to the current pepper at their next use.
  std::vector<std::string> retired_peppers = {};
};

class AuthStore {
 public:
  AuthStore(std::unique_ptr<sql::Database> database, StoreOptions options, const Clock& clock);

  // Opens the database and migrates its schema.
  static Result<std::unique_ptr<AuthStore>> Open(StoreOptions options, const Clock& clock);

  // Looks up the key with this SHA-256 digest; found = false if there is none. The version is that
  // of the latest change in the same snapshot.
  Result<v1::VerifyKeyResponse> VerifyKey(const v1::VerifyKeyRequest& request);

  // Keys that VerifyKey has found, for an outage of the database.
  KeyMemory& memory() { return memory_; }
  // While true, VerifyKey answers from memory and does not ask the database.
  void set_vouching(bool vouching) { vouching_ = vouching; }
  // While true, VerifyKey answers from memory if the database cannot be reached.
  void set_may_vouch(bool may_vouch) { may_vouch_ = may_vouch; }
  // The answer from memory; nullopt if the database has to be asked. Never blocks.
  std::optional<Result<v1::VerifyKeyResponse>> Vouch(const v1::VerifyKeyRequest& request) const;

  // Version of the latest change.
  Result<int64_t> Version();
  // Keys that changed after the version, oldest change first, at most `limit` of them.
  Result<std::vector<v1::KeyChange>> ChangedAfter(int64_t version, int limit);

  // An entry for the filter of live keys (ADR 0013). A key gets its tag when it is created; keys
  // from older versions get it at their next lookup.
  struct LiveKey {
    std::string key_id;
    uint64_t filter_tag = 0;  // 0: none yet
  };
  // At most `limit` keys that are not revoked, ordered by id, after this id.
  Result<std::vector<LiveKey>> LiveKeysAfter(const std::string& key_id, int limit);
  const std::string& tag_key() const { return tag_key_; }
  const StoreOptions& options() const { return options_; }
  sql::Database& database() { return *database_; }
  const Clock& clock() const { return clock_; }
  // Number of keys made with a retired pepper that have not been used since.
  Result<int64_t> KeysOfRetiredPeppers();

  // Limits by model, and plans. Gateways see a change of them as a change of every affected key.
  struct WorkspaceLimits {
    std::string plan;
    LimitValues limits;  // the workspace's own limits, as model_limits are
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
    std::string request_id;  // may be empty
    std::string content;     // content of the request; a repetition must have the same
    std::string actor;
    std::string address;  // client address; may be empty
  };
  Result<WorkspaceLimits> GetLimits(const std::string& workspace_id);
  Result<ModelLimits> GetKeyModelLimits(const std::string& workspace_id, const std::string& key_id);
  // KeyWithLimits and KeysWithLimits return active keys with the limits that apply. Lists start
  // with the newest key and continue after a KeyPlace.
  struct KeyPlace {
    int64_t created_at_us = INT64_MAX;
    std::string key_id;
  };
  Result<v1::Key> KeyWithLimits(const std::string& workspace_id, const std::string& key_id);
  Result<std::vector<v1::Key>> KeysWithLimits(const std::string& workspace_id,
                                              const KeyPlace& after, int limit);
  Result<Plan> GetPlan(const std::string& plan_id);
  // Plans ordered by id, after this one.
  Result<std::vector<Plan>> ListPlans(int limit, const std::string& after = "");
  // Changes the stored value, or fails. May run several times.
  template <typename T>
  using Edit = std::function<Result<void>(T&)>;
  admin::AdminResult<void> UpdateLimits(LimitChange change, const std::string& workspace_id,
                                        const Edit<WorkspaceLimits>& edit);
  admin::AdminResult<void> UpdateKeyModelLimits(LimitChange change, const std::string& workspace_id,
                                                const std::string& key_id,
                                                const Edit<ModelLimits>& edit);
  // Creates the plan if it does not exist.
  admin::AdminResult<void> UpdatePlan(LimitChange change, const std::string& plan_id,
                                      const Edit<Plan>& edit);

  // Verifies the whole audit log. Returns the number of events, or the first violation.
  BasicResult<int64_t, std::string> VerifyAudit();

  // A change within its transaction, which locks the single row of auth_head: versions and audit
  // sequences have no gaps and become visible in order.
  struct Change {
    sql::Connection& connection;
    // Version of the latest change; each changed key gets the next one.
    int64_t version = 0;
    int64_t now_us = 0;
    // If set, the transaction is rolled back and the call fails with it.
    std::optional<Error> refusal;
    std::optional<admin::Failure> failure;

    // Sets refusal or failure, and returns the result that ends the body.
    sql::SqlResult<std::string> Refuse(Error error);
    sql::SqlResult<std::string> Refuse(admin::Failure failed);
    // Appends to the audit log, with the time of the change.
    sql::SqlResult<void> Audit(AuditRecord record);
  };
  // Returns the bytes of the answer, which is stored for repeated calls.
  using Body = std::function<sql::SqlResult<std::string>(Change&)>;

  // Identifies a call. ChangeOnce runs the body once per scope and request_id, and keeps the answer
  // for seven days. A repeated call with the same content gets the stored answer; with other
  // content it fails with ALREADY_EXISTS.
  struct Once {
    std::string scope;  // the caller, so that request ids of different callers do not collide
    std::string request_id;
    std::string content;
  };
  struct Answer {
    std::string bytes;
    bool repeated = false;
  };
  admin::AdminResult<Answer> ChangeOnce(const Once& once, const Body& body);

  // What is stored of a secret.
  struct Stored {
    std::string lookup;
    std::string pepper_id;
    uint64_t filter_tag = 0;
  };
  Stored StoredOf(std::string_view digest) const;
  // Lookup values of a digest under each pepper, the current one first.
  std::vector<std::string> LookupsOf(std::string_view digest) const;

  // Runs body with a connection, and retries when the connection was lost: a restart of the
  // database closes every idle one. body must reset its output at the start of each attempt.
  Result<void> Read(const std::function<sql::SqlResult<void>(sql::Connection&)>& body);

 private:
  // As Read, for calls that gateways wait for: fails after three seconds, so that a hung database
  // is noticed while cached keys are still valid.
  Result<void> ReadSoon(const std::function<sql::SqlResult<void>(sql::Connection&)>& body);
  sql::SqlResult<Answer> ApplyOnce(Change& change, const std::string& request_id,
                                   const std::string& content, const Body& body);
  // Gives new versions to the keys that match the condition ("?" stands for the parameter), so that
  // gateways receive them again.
  static sql::SqlResult<void> Touch(Change& change, const std::string& condition,
                                    const std::string& parameter);
  admin::AdminResult<void> ApplyLimits(const LimitChange& change, std::string_view kind,
                                       const std::function<sql::SqlResult<void>(Change&)>& body);
  // The key from memory, with the version up to which memory is complete; nullopt if it is not
  // there.
  std::optional<v1::VerifyKeyResponse> Remembered(const v1::VerifyKeyRequest& request) const;
  // Stores the key's lookup value and tag under the current pepper. A failure does not matter: the
  // next lookup tries again.
  void MoveToPepper(const std::string& key_id, std::string_view digest);

  std::unique_ptr<sql::Database> database_;
  const StoreOptions options_;
  const std::string pepper_id_;
  // Derived from the pepper, so that the tags in the database are useless without it.
  const std::string tag_key_;
  const Clock& clock_;
  KeyMemory memory_;
  std::atomic<bool> vouching_{false};
  std::atomic<bool> may_vouch_{false};
};

}  // namespace tollgate::auth
