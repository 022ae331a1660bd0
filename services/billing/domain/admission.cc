// Holds of requests that a router has admitted from its lease. The requests have already run, so
// they are never refused for lack of credit (docs/design/ledger.md 13).
#include <algorithm>

#include "common/base/clock.h"
#include "services/billing/domain/batch.h"
#include "services/billing/domain/chain.h"
#include "services/billing/domain/lease_rules.h"

namespace tollgate::billing {

bool IsValid(const Admission& admission) {
  const Authorize& authorize = admission.authorize;
  return IsValid(authorize) && authorize.fallbacks.empty() && !authorize.check_only &&
         !authorize.key_quota_nano_usd && authorize.idempotency_key_digest.empty() &&
         IsLessee(admission.lessee) && IsMonth(admission.month) &&
         IsLeaseAmount(admission.authorized_nano_usd);
}

int64_t Batch::TakeFromLease(const Admission& admission) {
  Lease* lease = FindLease({wallet_->workspace, admission.lessee, admission.month});
  if (lease == nullptr) return 0;
  const int64_t covered = std::min(admission.authorized_nano_usd, lease->reserved_nano_usd());
  if (covered == 0) return 0;
  SetLease(*lease, lease->granted_nano_usd, lease->used_nano_usd + covered);
  Post(EntryKind::kLeaseReturn, Account::kHeld, Account::kFree, covered, lease->month,
       lease->lessee, admission.authorize.request_id.ToHex());
  return covered;
}

// An admitted request counts towards its month as long as that month accepts corrections.
int32_t Batch::AdmittedMonth(const Admission& admission) const {
  const int32_t now = UtcMonth(now_us_);
  const bool is_open =
      now_us_ < UtcMonthStartUs(NextMonth(admission.month)) + policy_.month_grace_us;
  return is_open ? std::min(admission.month, now) : now;
}

// The time of the request's id, so that a router that reports late dates it right. Always within
// the hold's month, and never in the future.
int64_t Batch::AdmittedUs(const Admission& admission, int32_t month) const {
  return std::clamp(admission.authorize.request_id.unix_ms() * 1000, UtcMonthStartUs(month),
                    std::min(now_us_, UtcMonthStartUs(NextMonth(month)) - 1));
}

Reply Batch::AdmitAgain(const Admission& admission, Hold& hold) {
  const Authorize& authorize = admission.authorize;
  if (hold.tombstone()) {
    if (hold.workspace != authorize.workspace) return Refuse(Deny::kIdReuse);
    // The caller got an error before the ledger knew of the request. The router still counts the
    // amount as used, so it leaves the lease, once.
    if (hold.authorized_nano_usd == 0 && admission.authorized_nano_usd > 0) {
      hold.authorized_nano_usd = admission.authorized_nano_usd;
      MarkChanged(hold);
      TakeFromLease(admission);
      PayReceivable(hold.id.ToHex());
    }
    return Refuse(Deny::kClosed);
  }
  if (!SameBody(hold, authorize)) return Refuse(Deny::kIdReuse);
  if (authorize.attempt < hold.attempt) return ReplyFor(hold, Deny::kClosed);
  // The operation that carries the admission decides whether it accepts a closed hold.
  if (hold.state != HoldState::kOpen || authorize.attempt == hold.attempt) return ReplyFor(hold);
  BeginAttempt(hold, authorize.attempt);
  TakeFromLease(admission);
  Raise(hold, admission.authorized_nano_usd - hold.authorized_nano_usd);
  return ReplyFor(hold);
}

Reply Batch::Admit(const Admission& admission, const Id& request_id, const std::string& workspace) {
  const Authorize& authorize = admission.authorize;
  if (!IsValid(admission) || authorize.request_id != request_id ||
      authorize.workspace != workspace || !IsTimely(request_id) || !wallet_) {
    return Refuse(Deny::kInvalid);
  }
  if (Hold* hold = FindHold(request_id)) return AdmitAgain(admission, *hold);
  const int64_t wanted = admission.authorized_nano_usd;
  const int64_t covered = TakeFromLease(admission);
  Hold hold = MakeHold(authorize);
  hold.month = AdmittedMonth(admission);
  hold.cap_nano_usd = wallet_->cap_nano_usd;
  hold.created_us = AdmittedUs(admission, hold.month);
  hold.expires_us = now_us_ + policy_.hold_ttl_us;
  const int64_t first = std::min(
      {wanted, wallet_->available_nano_usd(), CapHeadroom(wallet_->cap_nano_usd, hold.month)});
  hold.first_authorized_nano_usd = first;
  hold.authorized_nano_usd = first;
  Hold& stored = state_.holds.emplace(request_id, std::move(hold)).first->second;
  key_hold_ = &stored;
  out_.new_holds.push_back(request_id);
  ++wallet_->open_holds;
  const std::string id = request_id.ToBytes();
  Post(EntryKind::kHold, Account::kFree, Account::kHeld, first, stored.month, id, "",
       AdmissionDetail(stored));
  // Lowering the cap after the lease was granted does not reduce what the lease covers.
  if (covered > first) {
    stored.authorized_nano_usd = covered;
    Post(EntryKind::kExtend, Account::kFree, Account::kHeld, covered - first, stored.month, id);
  }
  return ReplyFor(stored);
}

}  // namespace tollgate::billing
