// Authorize: opens a hold of the input bound and a first slice of output (decisions 1 to 3).
#include <algorithm>
#include <limits>

#include "common/base/clock.h"
#include "services/billing/domain/batch.h"
#include "services/billing/domain/chain.h"

namespace tollgate::billing {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr size_t kMaxQuotaKeys = 64;

Candidate FirstOf(const Authorize& authorize) {
  return {authorize.model, authorize.rates, authorize.price_version, authorize.prompt_bound,
          authorize.output_bound};
}

// Returns an empty list if there is only one candidate.
std::vector<Candidate> CandidatesOf(const Authorize& authorize) {
  if (authorize.fallbacks.empty()) return {};
  std::vector<Candidate> all = {FirstOf(authorize)};
  all.insert(all.end(), authorize.fallbacks.begin(), authorize.fallbacks.end());
  return all;
}

// Stored one per line.
bool IsQuotaKey(const std::string& key_id) {
  return !key_id.empty() && key_id.size() <= 128 && key_id.find('\n') == std::string::npos;
}

bool IsDigest(const std::string& bytes) { return bytes.empty() || bytes.size() == 32; }

// The amount that covers the whole prompt and this much output, whichever model answers.
int64_t Price(const Authorize& authorize, int64_t output_tokens) {
  int64_t dearest_nano_usd = NeededNanoUsd(FirstOf(authorize), output_tokens);
  for (const Candidate& fallback : authorize.fallbacks) {
    dearest_nano_usd = std::max(dearest_nano_usd, NeededNanoUsd(fallback, output_tokens));
  }
  return dearest_nano_usd;
}

}  // namespace

bool SameBody(const Hold& hold, const Authorize& authorize) {
  return hold.workspace == authorize.workspace && hold.key_id == authorize.key_id &&
         hold.candidates == CandidatesOf(authorize) &&
         (hold.candidates.empty() ? hold.Current() : hold.candidates.front()) ==
             FirstOf(authorize) &&
         hold.key_quota_nano_usd == authorize.key_quota_nano_usd;
}

bool IsValid(const Authorize& authorize) {
  const auto& fallbacks = authorize.fallbacks;
  return !authorize.request_id.empty() && authorize.attempt >= 0 && IsValid(FirstOf(authorize)) &&
         fallbacks.size() < kMaxCandidates &&
         std::ranges::all_of(
             fallbacks, [](const Candidate& one) { return IsValid(one); }) &&
         authorize.candidate >= 0 && static_cast<size_t>(authorize.candidate) <= fallbacks.size() &&
         authorize.key_id.size() <= 128 && authorize.client_request_id.size() <= 128 &&
         authorize.key_quota_nano_usd.value_or(0) >= 0 &&
         authorize.quota_keys.size() <= kMaxQuotaKeys &&
         std::ranges::all_of(authorize.quota_keys, IsQuotaKey) &&
         IsDigest(authorize.idempotency_key_digest) &&
         authorize.idempotency_body_digest.size() == authorize.idempotency_key_digest.size();
}

Hold MakeHold(const Authorize& authorize) {
  Hold hold;
  hold.id = authorize.request_id;
  hold.workspace = authorize.workspace;
  hold.key_id = authorize.key_id;
  hold.model = authorize.model;
  hold.rates = authorize.rates;
  hold.price_version = authorize.price_version;
  hold.prompt_bound = authorize.prompt_bound;
  hold.output_bound = authorize.output_bound;
  hold.candidates = CandidatesOf(authorize);
  hold.Ask(authorize.candidate);
  hold.attempt = authorize.attempt;
  hold.key_quota_nano_usd = authorize.key_quota_nano_usd;
  hold.quota_keys = authorize.quota_keys;
  hold.surface = authorize.surface;
  hold.streamed = authorize.streamed;
  hold.client_request_id = authorize.client_request_id;
  hold.idempotency_key_digest = authorize.idempotency_key_digest;
  return hold;
}

bool Batch::IsTimely(const Id& request_id) const {
  const int64_t created_us = request_id.unix_ms() * 1000;
  return now_us_ - created_us <= policy_.id_max_age_us && created_us - now_us_ <= kMaxClockSkewUs;
}

Reply Batch::Repeat(const Authorize& authorize, Hold& hold, Reply granted) {
  if (hold.tombstone()) {
    return Refuse(hold.workspace == authorize.workspace ? Deny::kClosed : Deny::kIdReuse);
  }
  if (!SameBody(hold, authorize)) return Refuse(Deny::kIdReuse);
  if (hold.state != HoldState::kOpen || authorize.attempt < hold.attempt) {
    return Refuse(Deny::kClosed);
  }
  if (authorize.attempt > hold.attempt) {
    BeginAttempt(hold, authorize.attempt);
    hold.Ask(authorize.candidate);
  } else if (authorize.candidate != hold.candidate) {
    // Reported usage is never repriced: only a new attempt can change the model.
    return Refuse(Deny::kIdReuse);
  }
  granted.authorized_nano_usd =
      hold.attempt == 0 ? hold.first_authorized_nano_usd : hold.authorized_nano_usd;
  return granted;
}

// Opens the hold or returns the reason of the refusal. A repeated id gets the first reply.
Reply Batch::Execute(const Authorize& authorize) {
  if (!IsValid(authorize)) return Refuse(Deny::kInvalid);
  if (!IsTimely(authorize.request_id)) return Refuse(Deny::kClock);
  Reply granted;
  granted.ok = true;
  const Rates& rates =
      authorize.candidate == 0
          ? authorize.rates
          : authorize.fallbacks[static_cast<size_t>(authorize.candidate) - 1].rates;
  granted.slice_nano_usd = HoldNanoUsd(CostPicoUsd(rates, 0, policy_.slice_tokens));
  if (Hold* hold = FindHold(authorize.request_id)) return Repeat(authorize, *hold, granted);
  if (!wallet_) return Refuse(Deny::kNoCredit);
  if (wallet_->frozen == Freeze::kFailedCheck) return Refuse(Deny::kFrozenByCheck);
  if (wallet_->frozen != Freeze::kNone) return Refuse(Deny::kFrozen);
  if (const Deny conflict = FindIdempotencyConflict(authorize); conflict != Deny::kNone) {
    Reply refused = Refuse(conflict);
    if (conflict == Deny::kIdempotencyRunning) refused.retry_after_ms = policy_.held_retry_ms;
    return refused;
  }

  const int64_t least = Price(authorize, 1);
  const int64_t wanted = Price(authorize, policy_.slice_tokens);
  const int32_t month = UtcMonth(now_us_);
  const int64_t posted = wallet_->posted_nano_usd();
  if (posted <= 0 || posted < least) return Refuse(Deny::kNoCredit);
  const std::optional<int64_t>& cap = wallet_->cap_nano_usd;
  const int64_t left_of_cap = cap ? *cap - FindOrCreateMonth(month).spent_nano_usd : kMax;
  if (left_of_cap <= 0 || left_of_cap < least) return Refuse(Deny::kCap);
  Hold hold = MakeHold(authorize);
  hold.month = month;
  if (const auto& quota = authorize.key_quota_nano_usd) {
    const int64_t left = *quota - UseOfQuota(hold, month).spent_nano_usd;
    if (left <= 0 || left < least) return Refuse(Deny::kQuota);
  }
  const int64_t authorized = std::min(
      {wanted, wallet_->available_nano_usd(), CapHeadroom(cap, month), QuotaHeadroom(hold, month)});
  if (authorized < least) {
    if (policy_.held_is_no_credit) return Refuse(Deny::kNoCredit);
    Reply held = Refuse(Deny::kHeld);
    held.retry_after_ms = policy_.held_retry_ms;
    return held;
  }

  granted.authorized_nano_usd = authorized;
  if (authorize.check_only) return granted;

  hold.cap_nano_usd = cap;
  hold.first_authorized_nano_usd = authorized;
  hold.authorized_nano_usd = authorized;
  hold.created_us = now_us_;
  hold.expires_us = now_us_ + policy_.hold_ttl_us;
  const Hold& stored = state_.holds.emplace(hold.id, std::move(hold)).first->second;
  key_hold_ = &stored;
  out_.new_holds.push_back(authorize.request_id);
  TakeIdempotencyKey(authorize);
  ++wallet_->open_holds;
  Post(EntryKind::kHold, Account::kFree, Account::kHeld, authorized, month,
       authorize.request_id.ToBytes(), "", AdmissionDetail(stored));
  return granted;
}

}  // namespace tollgate::billing
