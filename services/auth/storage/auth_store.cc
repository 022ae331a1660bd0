#include "services/auth/storage/auth_store.h"

#include <chrono>

#include "common/auth_schema/auth_schema.h"
#include "common/base/crypto.h"
#include "common/base/try.h"
#include "common/keys/key_filter.h"
#include "services/auth/storage/audit_log.h"
#include "services/auth/storage/rows.h"

namespace tollgate::auth {

using sql::SqlResult;

namespace {

constexpr int kReadAttempts = 3;
constexpr size_t kDigestBytes = 32;
constexpr std::chrono::seconds kSoon(3);
// Identifies a pepper without revealing anything about it.
std::string PepperId(const std::string& pepper) {
  return HexEncode(HmacSha256(pepper, "pepper id").substr(0, 8));
}

}  // namespace

Result<std::unique_ptr<AuthStore>> AuthStore::Open(StoreOptions options, const Clock& clock) {
  auto database = sql::Database::Open(options.database);
  if (!database) return Fail{ToError(database.error())};
  auto ready = auth_schema::Migrate(**database);
  // Keys without a pepper id were created when there was only one pepper. With retired peppers
  // their pepper is unknown; they get its id at their next use.
  if (ready && options.retired_peppers.empty()) {
    ready = (*database)->Transact(sql::TxMode::kWrite, [&](sql::Connection& sql) {
      return WithoutValue(sql.Execute("UPDATE virtual_key SET pepper_id = $1 WHERE pepper_id = ''",
                                      {PepperId(options.pepper)}));
    });
  }
  if (!ready) return Fail{ToError(ready.error())};
  return std::make_unique<AuthStore>(std::move(*database), std::move(options), clock);
}

AuthStore::AuthStore(std::unique_ptr<sql::Database> database, StoreOptions options,
                     const Clock& clock)
    : database_(std::move(database)),
      options_(std::move(options)),
      pepper_id_(PepperId(options_.pepper)),
      tag_key_(HmacSha256(options_.pepper, "filter of live keys")),
      clock_(clock) {}

std::vector<std::string> AuthStore::LookupsOf(std::string_view digest) const {
  std::vector<std::string> lookups = {HmacSha256(options_.pepper, digest)};
  for (const std::string& pepper : options_.retired_peppers) {
    lookups.push_back(HmacSha256(pepper, digest));
  }
  return lookups;
}

AuthStore::Stored AuthStore::StoredOf(std::string_view digest) const {
  return {.lookup = HmacSha256(options_.pepper, digest),
          .pepper_id = pepper_id_,
          .filter_tag = KeyTag(tag_key_, digest)};
}

Result<void> AuthStore::Read(const std::function<SqlResult<void>(sql::Connection&)>& body) {
  for (int attempt = 1;; ++attempt) {
    auto connection = database_->Borrow();
    auto done = connection ? body(**connection) : SqlResult<void>(Fail{connection.error()});
    if (done) return {};
    // During a known outage each attempt would only wait for a connection.
    const bool last = attempt == kReadAttempts || vouching_;
    if (!done.error().retryable() || last) return Fail{ToError(done.error())};
  }
}

Result<void> AuthStore::ReadSoon(const std::function<SqlResult<void>(sql::Connection&)>& body) {
  bool late = false;
  const auto until = std::chrono::steady_clock::now() + kSoon;
  const sql::CancelScope scope(
      [&] { return late = late || std::chrono::steady_clock::now() > until; });
  auto done = Read(body);
  if (!done && late) return Unavailable("the key database did not answer within 3 s");
  return done;
}

std::optional<Result<v1::VerifyKeyResponse>> AuthStore::Vouch(
    const v1::VerifyKeyRequest& request) const {
  // No key has a digest of another length.
  if (request.key_digest().size() != kDigestBytes) return v1::VerifyKeyResponse();
  if (!vouching_) return std::nullopt;
  auto remembered = Remembered(request);
  if (!remembered)
    return Unavailable("the key database is unreachable, and the key is not in memory");
  return std::move(*remembered);
}

std::optional<v1::VerifyKeyResponse> AuthStore::Remembered(
    const v1::VerifyKeyRequest& request) const {
  auto kept = memory_.Find(HmacSha256(options_.pepper, request.key_digest()));
  if (!kept) return std::nullopt;
  v1::VerifyKeyResponse response;
  response.set_found(true);
  response.set_vouched(true);
  response.set_version(kept->version);
  *response.mutable_key() = std::move(kept->key);
  return response;
}

Result<v1::VerifyKeyResponse> AuthStore::VerifyKey(const v1::VerifyKeyRequest& request) {
  v1::VerifyKeyResponse response;
  if (auto vouched = Vouch(request)) return std::move(*vouched);
  const std::vector<std::string> lookups = LookupsOf(request.key_digest());
  std::vector<sql::Param> params;
  std::string marks;
  for (const std::string& lookup : lookups) {
    params.push_back(sql::Param::Blob(lookup));
    marks += (marks.empty() ? "$" : ", $") + std::to_string(params.size());
  }
  // One statement, so that key and version belong to the same snapshot.
  const std::string text = "SELECT q.*, h.version FROM auth_head h LEFT JOIN (" +
                           std::string(kSelectKeys) + " WHERE k.lookup IN (" + marks +
                           ")) q ON 1 = 1 WHERE h.id = 1";
  bool is_current = true;
  const auto done = ReadSoon([&](sql::Connection& sql) {
    response.Clear();
    return sql.Query(text, params, [&](const sql::Row& row) {
      response.set_version(row.Int(kKeyColumns));
      if (row.IsNull(0)) return;
      response.set_found(true);
      *response.mutable_key() = ReadKeyWithPlan(row);
      is_current = ReadFilterTag(row, pepper_id_) != 0;
    });
  });
  if (!done && may_vouch_) {
    // The feed polls every 250 ms and has not noticed the outage yet.
    if (auto remembered = Remembered(request)) return std::move(*remembered);
  }
  if (!done) return Fail{done.error()};
  if (response.found()) {
    memory_.Remember(lookups.front(), response.key(), response.version());
  } else {
    memory_.Forget(lookups.front());
  }
  if (response.found() && !is_current) {
    MoveToPepper(response.key().key_id(), request.key_digest());
  }
  return response;
}

void AuthStore::MoveToPepper(const std::string& key_id, std::string_view digest) {
  const Stored stored = StoredOf(digest);
  (void)Read([&](sql::Connection& sql) -> SqlResult<void> {
    TRY(sql.Execute(
        "UPDATE virtual_key SET lookup = $1, pepper_id = $2, filter_tag = $3 WHERE key_id = $4",
        {sql::Param::Blob(stored.lookup), stored.pepper_id, static_cast<int64_t>(stored.filter_tag),
         key_id}));
    return {};
  });
}

Result<int64_t> AuthStore::KeysOfRetiredPeppers() {
  int64_t count = 0;
  const auto done = Read([&](sql::Connection& sql) {
    return sql.Query("SELECT count(*) FROM virtual_key WHERE pepper_id <> $1 AND state <> $2",
                     {pepper_id_, static_cast<int64_t>(v1::KEY_STATE_REVOKED)},
                     [&](const sql::Row& row) { count = row.Int(0); });
  });
  if (!done) return Fail{done.error()};
  return count;
}

Result<int64_t> AuthStore::Version() {
  int64_t version = 0;
  const auto done = ReadSoon([&](sql::Connection& sql) {
    return sql.Query("SELECT version FROM auth_head WHERE id = 1", {},
                     [&](const sql::Row& row) { version = row.Int(0); });
  });
  if (!done) return Fail{done.error()};
  return version;
}

Result<std::vector<v1::KeyChange>> AuthStore::ChangedAfter(int64_t version, int limit) {
  std::vector<v1::KeyChange> changes;
  const std::string text =
      std::string(kSelectKeys) + " WHERE k.version > $1 ORDER BY k.version LIMIT $2";
  const auto done = ReadSoon([&](sql::Connection& sql) {
    changes.clear();
    return sql.Query(text, {version, limit}, [&](const sql::Row& row) {
      v1::KeyChange& change = changes.emplace_back();
      *change.mutable_key() = ReadKeyWithPlan(row);
      change.set_filter_tag(ReadFilterTag(row, pepper_id_));
    });
  });
  if (!done) return Fail{done.error()};
  return changes;
}

Result<std::vector<AuthStore::LiveKey>> AuthStore::LiveKeysAfter(const std::string& key_id,
                                                                 int limit) {
  std::vector<LiveKey> keys;
  const auto done = ReadSoon([&](sql::Connection& sql) {
    keys.clear();
    return sql.Query(
        "SELECT key_id, filter_tag, pepper_id FROM virtual_key WHERE key_id > $1 AND state <> $2 "
        "ORDER BY key_id LIMIT $3",
        {key_id, static_cast<int64_t>(v1::KEY_STATE_REVOKED), limit}, [&](const sql::Row& row) {
          const bool tagged = row.Bytes(2) == pepper_id_;
          keys.push_back({row.Text(0), tagged ? static_cast<uint64_t>(row.Int(1)) : 0});
        });
  });
  if (!done) return Fail{done.error()};
  return keys;
}

BasicResult<int64_t, std::string> AuthStore::VerifyAudit() {
  auto connection = database_->Borrow();
  if (!connection) return Fail{connection.error().message};
  auto finding = VerifyAuditLog(**connection);
  if (!finding) return Fail{finding.error().message};
  if (!finding->problem.empty()) return Fail{finding->problem};
  return finding->sequence;
}

}  // namespace tollgate::auth
