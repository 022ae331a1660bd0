#include "services/auth/admin/key_policy.h"

#include <algorithm>
#include <map>

#include "common/base/crypto.h"
#include "common/base/time_units.h"
#include "common/base/try.h"
#include "common/keys/key_format.h"
#include "common/observability/log.h"
#include "common/observability/metrics.h"
#include "services/auth/domain/rules.h"
#include "services/auth/storage/key_use.h"

namespace tollgate::auth {

namespace pb = tollgate::admin::v1;

using sql::SqlResult;
using Change = AuthStore::Change;

namespace {

// Label of canary keys. No program uses them, so any use means that the key leaked.
constexpr std::string_view kCanaryLabel = "tollgate-canary=true";

constexpr int kMaxRefusals = 100;
constexpr size_t kMaxCode = 64;
constexpr int kMaxUses = 1000;
constexpr int kMaxAddresses = 1000;
constexpr size_t kMaxReporter = 64;

bool IsCode(std::string_view text) {
  return text.size() <= kMaxCode && std::ranges::all_of(text, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
         });
}

bool IsRefusal(const v1::RefusalCount& refusal) {
  return refusal.count() >= 0 && !refusal.code().empty() && IsCode(refusal.code()) &&
         IsCode(refusal.reason());
}

Result<void> CheckReport(const v1::ReportKeyUseRequest& request) {
  if (request.reporter().empty() || request.reporter().size() > kMaxReporter ||
      !CheckRemark(request.reporter(), "reporter")) {
    return BadRequest("reporter is 1 to 64 bytes of text.", "reporter");
  }
  if (request.uses_size() > kMaxUses) return BadRequest("At most 1000 uses at once.", "uses");
  for (const v1::KeyUse& use : request.uses()) {
    if (!IsKeyId(use.key_id()) || use.requests_in_hour() < 0 || use.refusals_in_minute() < 0 ||
        use.addresses_size() > kMaxAddresses) {
      return BadRequest("A use has a key id, counts from 0 on and at most 1000 addresses.", "uses");
    }
    if (use.refusals_size() > kMaxRefusals || !std::ranges::all_of(use.refusals(), IsRefusal)) {
      return BadRequest("A use has at most 100 refusals, each with a code and a count.", "uses");
    }
  }
  return {};
}

// Why to disable the key, and the id of this decision. An empty id: leave the key as it is.
struct Verdict {
  std::string id, reason;
  std::string policy = "abuse";
};

// Finds the canaries among the used keys.
SqlResult<void> FindCanaries(sql::Connection& sql,
                             const std::multimap<std::string, const v1::KeyUse*>& uses,
                             int64_t now_us, std::map<std::string, Verdict>& verdicts) {
  std::vector<sql::Param> ids;
  for (auto use = uses.begin(); use != uses.end(); use = uses.upper_bound(use->first)) {
    ids.emplace_back(use->first);
  }
  if (ids.empty()) return {};
  TRY(auto canaries, KeysWithLabel(sql, ids, kCanaryLabel));
  for (const std::string& id : canaries) {
    verdicts[id] = {"canary-" + id + "-" + std::to_string(now_us / kMinuteUs),
                    "a canary key was used", "canary"};
  }
  return {};
}

prometheus::Counter& CanaryUses() {
  return metrics::Counter("tollgate_auth_canary_key_uses_total",
                          "Reports that a canary key was used, one per key and gateway.");
}

void SoundAlarm(const std::string& key_id) {
  CanaryUses().Increment();
  log::Error("canary key used: the place where it was planted has been compromised",
             {{"key", key_id}});
}

SqlResult<Verdict> Judge(sql::Connection& sql, const PolicyOptions& policy, const v1::KeyUse& use) {
  if (policy.refusals_per_minute > 0 && use.refusals_in_minute() > 0) {
    TRY(auto sum, SumOfUse(sql, use.key_id(), UseKind::kRefusalsOfMinute, use.minute()));
    if (sum > policy.refusals_per_minute) {
      return Verdict{"refusals-" + use.key_id() + "-" + std::to_string(use.minute()),
                     "more than " + std::to_string(policy.refusals_per_minute) +
                         " refused requests in a minute"};
    }
  }
  if (policy.addresses_per_hour > 0 && use.addresses_size() > 0) {
    TRY(auto sum, SumOfUse(sql, use.key_id(), UseKind::kAddressesOfHour, use.hour()));
    if (sum > policy.addresses_per_hour) {
      return Verdict{"addresses-" + use.key_id() + "-" + std::to_string(use.hour()),
                     "used from more than " + std::to_string(policy.addresses_per_hour) +
                         " addresses in an hour"};
    }
  }
  return Verdict();
}

// Finds a key within a change.
using Find = std::function<SqlResult<std::optional<KeyRecord>>(sql::Connection&)>;

// Disables the key that `find` returns if it is active. Works once per id, so a key that a person
// enabled again is not disabled for the same reason.
AdminResult<void> DisableByPolicy(AuthStore& store, const std::string& policy,
                                  const std::string& id, const std::string& address,
                                  const std::string& reason, const Find& find) {
  const AuthStore::Once once{.scope = "policy:" + policy, .request_id = id, .content = id};
  auto answer = store.ChangeOnce(once, [&](Change& change) -> SqlResult<std::string> {
    TRY(auto found, find(change.connection));
    if (!found || found->key.state() != v1::KEY_STATE_ACTIVE) return std::string();
    KeyRecord& record = *found;
    record.key.set_state(v1::KEY_STATE_DISABLED);
    record.state_reason = reason;
    record.key.set_version(++change.version);
    record.key.set_changed_at_us(change.now_us);
    TRY(UpdateKey(change.connection, record));
    AuditRecord event;
    event.actor = "policy:" + policy;
    event.address = address;
    event.action = KeyAction(v1::KEY_STATE_DISABLED);
    event.workspace_id = record.key.workspace_id();
    event.subject = record.key.key_id();
    event.detail = reason;
    TRY(change.Audit(std::move(event)));
    return record.key.key_id();
  });
  if (!answer) return Fail{answer.error()};
  return {};
}

}  // namespace

std::string_view KeyAction(v1::KeyState state) {
  switch (state) {
    case v1::KEY_STATE_ACTIVE:
      return "key.enable";
    case v1::KEY_STATE_DISABLED:
      return "key.disable";
    default:
      return "key.revoke";
  }
}

SqlResult<std::optional<KeyRecord>> KeyWithDigest(sql::Connection& connection,
                                                  const AuthStore& store, std::string_view digest) {
  for (const std::string& lookup : store.LookupsOf(digest)) {
    TRY(auto found, FindKeyByLookup(connection, lookup));
    if (found) return found;
  }
  return std::optional<KeyRecord>();
}

AdminResult<void> DisableLeaked(AuthStore& store, std::string_view digest,
                                const std::string& address, const std::string& reason) {
  // The id is random: each report disables the key, also after a person enabled it again.
  return DisableByPolicy(store, "leak", HexEncode(RandomBytes(16)), address, reason,
                         [&](sql::Connection& sql) { return KeyWithDigest(sql, store, digest); });
}

Result<v1::ReportKeyUseResponse> StoreUse(AuthStore& store, const PolicyOptions& policy,
                                          const v1::ReportKeyUseRequest& request) {
  TRY(CheckReport(request));
  // Sorted by key, so that two reports lock rows in the same order and do not deadlock.
  std::multimap<std::string, const v1::KeyUse*> uses;
  for (const v1::KeyUse& use : request.uses()) uses.emplace(use.key_id(), &use);
  std::map<std::string, Verdict> verdicts;
  const int64_t now_us = store.clock().WallUs();
  const auto done =
      store.database().Transact(sql::TxMode::kWrite, [&](sql::Connection& sql) -> SqlResult<void> {
        verdicts.clear();
        for (const auto& [key_id, use] : uses) {
          TRY(WriteKeyUse(sql, request.reporter(), *use, now_us));
          TRY(auto verdict, Judge(sql, policy, *use));
          if (!verdict.id.empty()) verdicts[key_id] = verdict;
        }
        return FindCanaries(sql, uses, now_us, verdicts);
      });
  if (!done) return Fail{sql::ToError(done.error())};
  for (const auto& [key_id, verdict] : verdicts) {
    if (verdict.policy == "canary") SoundAlarm(key_id);
    auto disabled =
        DisableByPolicy(store, verdict.policy, verdict.id, "", verdict.reason,
                        [id = key_id](sql::Connection& sql) { return FindKeyById(sql, id); });
    // The reporter sends the report again, which repeats the decision.
    if (!disabled) return Unavailable("the policy could not disable a key");
  }
  v1::ReportKeyUseResponse response;
  response.set_wants_addresses(policy.addresses_per_hour > 0);
  return response;
}

SqlResult<void> AddRequests(sql::Connection& connection, int64_t now_us,
                            const std::vector<pb::Key*>& keys) {
  if (keys.empty()) return {};
  std::map<std::string, pb::Key*> by_id;
  std::vector<sql::Param> ids;
  for (pb::Key* key : keys) {
    const auto [entry, added] = by_id.emplace(key->name().substr(key->name().rfind('/') + 1), key);
    ids.emplace_back(entry->first);
  }
  return ReadRequests(connection, ids, now_us, [&](const std::string& key_id, int64_t count) {
    pb::Key& key = *by_id[key_id];
    key.set_requests_24h(key.requests_24h() + count);
  });
}

Result<void> PruneUse(AuthStore& store) {
  CanaryUses();  // registers the counter at 0, so that alerts see the first use
  const int64_t now_us = store.clock().WallUs();
  return store.Read([&](sql::Connection& sql) { return PruneKeyUse(sql, now_us); });
}

}  // namespace tollgate::auth
