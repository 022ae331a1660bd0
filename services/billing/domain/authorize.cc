// Authorize: opens a hold of the input bound and a first slice of output (decisions 1 to 3).
#include <algorithm>
#include <limits>

#include "common/base/clock.h"
#include "services/billing/domain/batch.h"
#include "services/billing/domain/chain.h"

namespace tollgate::billing {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
// Above any price (0.1 USD per token); with the largest token count every cost in nano-USD still
// fits 64 bits.
constexpr int64_t kMaxRatePicoUsd = 100'000'000'000;
constexpr int64_t kMaxClockSkewUs = 24LL * 3600 * 1'000'000;

bool SameBody(const Hold& hold, const Authorize& authorize) {
  return hold.workspace == authorize.workspace && hold.key_id == authorize.key_id &&
         hold.model == authorize.model && hold.rates == authorize.rates &&
         hold.price_version == authorize.price_version &&
         hold.prompt_bound == authorize.prompt_bound &&
         hold.output_bound == authorize.output_bound &&
         hold.key_quota_nano_usd == authorize.key_quota_nano_usd;
}

bool IsDigest(const std::string& bytes) { return bytes.empty() || bytes.size() == 32; }

bool IsValid(const Authorize& authorize) {
  const auto rate = [](int64_t pico_usd) { return pico_usd >= 0 && pico_usd <= kMaxRatePicoUsd; };
  return !authorize.request_id.empty() && IsTokenCount(authorize.prompt_bound) &&
         IsTokenCount(authorize.output_bound) && authorize.attempt >= 0 &&
         rate(authorize.rates.input_pico_usd) && rate(authorize.rates.output_pico_usd) &&
         authorize.model.size() <= 256 && authorize.key_id.size() <= 128 &&
         authorize.client_request_id.size() <= 128 &&
         authorize.key_quota_nano_usd.value_or(0) >= 0 &&
         IsDigest(authorize.idempotency_key_digest) &&
         authorize.idempotency_body_digest.size() == authorize.idempotency_key_digest.size();
}

// What must be held for the whole prompt and this much output.
int64_t Price(const Authorize& authorize, int64_t output_tokens) {
  return HoldNanoUsd(CostPicoUsd(authorize.rates, authorize.prompt_bound,
                                 std::min(authorize.output_bound, output_tokens)));
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
  hold.attempt = authorize.attempt;
  hold.key_quota_nano_usd = authorize.key_quota_nano_usd;
  hold.surface = authorize.surface;
  hold.streamed = authorize.streamed;
  hold.client_request_id = authorize.client_request_id;
  hold.idempotency_key_digest = authorize.idempotency_key_digest;
  return hold;
}

}  // namespace

// Takes the hold, or says why not. A repeated id gets the first reply.
Reply Batch::Execute(const Authorize& authorize) {
  const int64_t created_us = authorize.request_id.unix_ms() * 1000;
  if (!IsValid(authorize) || now_us_ - created_us > policy_.id_max_age_us ||
      created_us - now_us_ > kMaxClockSkewUs) {
    return Refuse(Deny::kInvalid);
  }
  Reply granted;
  granted.ok = true;
  granted.slice_nano_usd = HoldNanoUsd(CostPicoUsd(authorize.rates, 0, policy_.slice_tokens));
  if (Hold* hold = FindHold(authorize.request_id)) {
    if (hold->tombstone()) {
      return Refuse(hold->workspace == authorize.workspace ? Deny::kClosed : Deny::kIdReuse);
    }
    if (!SameBody(*hold, authorize)) return Refuse(Deny::kIdReuse);
    if (hold->state != HoldState::kOpen || authorize.attempt < hold->attempt) {
      return Refuse(Deny::kClosed);
    }
    if (authorize.attempt > hold->attempt) BeginAttempt(*hold, authorize.attempt);
    granted.authorized_nano_usd =
        hold->attempt == 0 ? hold->first_authorized_nano_usd : hold->authorized_nano_usd;
    return granted;
  }
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
    const KeyMonth* row = FindKeyMonth(hold.key_id, month);
    const int64_t left = *quota - (row ? row->spent_nano_usd : 0);
    if (left <= 0 || left < least) return Refuse(Deny::kQuota);
  }
  const int64_t authorized = std::min(
      {wanted, wallet_->available_nano_usd(), CapHeadroom(cap, month), QuotaHeadroom(hold)});
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
