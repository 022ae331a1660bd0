// Leases: credit of a workspace that a router may spend without asking, and the holds of the
// requests that it has admitted from it (docs/design/ledger.md 13).
#include <algorithm>

#include "common/base/clock.h"
#include "services/billing/domain/batch.h"
#include "services/billing/domain/chain.h"

namespace tollgate::billing {
namespace {

// As much as may be posted.
constexpr int64_t kMaxLeaseNanoUsd = 1'000'000'000 * kNanoPerUsd;
// A lessee may have this part of the credit that requests do not hold. With many lessees less, so
// that their leases together take half of it at most.
constexpr int64_t kLeastShare = 100;
constexpr int64_t kSharesOfOneLease = 8;
// Credit is low when each lessee could not take so many leases more.
constexpr int64_t kLeasesLeft = 4;

int32_t NextMonth(int32_t month) { return month % 100 == 12 ? month + 89 : month + 1; }

bool IsMonth(int32_t month) {
  return month >= 197001 && month <= 999912 && month % 100 >= 1 && month % 100 <= 12;
}

// It is text in the database and in lists.
bool IsLessee(const std::string& name) {
  return !name.empty() && name.size() <= 64 &&
         std::ranges::all_of(name, [](char c) { return c > ' ' && c <= '~'; });
}

bool IsAmount(int64_t nano_usd) { return nano_usd >= 0 && nano_usd <= kMaxLeaseNanoUsd; }

bool IsValid(const TakeLease& take) {
  return IsLessee(take.lessee) && IsAmount(take.used_nano_usd) && IsAmount(take.wanted_nano_usd) &&
         (take.month == 0 || IsMonth(take.month));
}

bool IsValid(const Admission& admission) {
  const Authorize& authorize = admission.authorize;
  return IsValid(authorize) && authorize.fallbacks.empty() && !authorize.check_only &&
         !authorize.key_quota_nano_usd && authorize.idempotency_key_digest.empty() &&
         IsLessee(admission.lessee) && IsMonth(admission.month) &&
         IsAmount(admission.authorized_nano_usd);
}

Reply Granted(int32_t month, int64_t granted_nano_usd) {
  Reply reply;
  reply.ok = true;
  reply.lease.month = month;
  reply.lease.granted_nano_usd = granted_nano_usd;
  return reply;
}

}  // namespace

void AddLeasesOf(const Operation& operation, int64_t now_us, std::vector<LeaseName>& names) {
  if (const auto* take = std::get_if<TakeLease>(&operation)) {
    const int32_t month = UtcMonth(now_us);
    names.push_back({take->workspace, take->lessee, month});
    if (take->month != 0 && take->month != month) {
      names.push_back({take->workspace, take->lessee, take->month});
    }
  } else if (const auto* expire = std::get_if<ExpireLease>(&operation)) {
    names.push_back({expire->workspace, expire->lessee, expire->month});
  } else if (const Admission* admission = AdmissionOf(operation)) {
    names.push_back({WorkspaceOf(operation), admission->lessee, admission->month});
  }
}

Lease* Batch::FindLease(const LeaseName& name) {
  const auto found = state_.leases.find(LeaseKey(name));
  if (!before_.lease_name) {
    before_.lease_name = name;
    if (found != state_.leases.end()) before_.lease = found->second;
  }
  return found == state_.leases.end() ? nullptr : &found->second;
}

void Batch::SetLease(Lease& lease, int64_t granted_nano_usd, int64_t used_nano_usd) {
  const int64_t before = lease.reserved_nano_usd();
  lease.granted_nano_usd = granted_nano_usd;
  lease.used_nano_usd = used_nano_usd;
  const int64_t after = lease.reserved_nano_usd();
  wallet_->leased_nano_usd += after - before;
  const int change = (after > 0 ? 1 : 0) - (before > 0 ? 1 : 0);
  wallet_->leases += change;
  wallet_->open_holds += change;
  out_.leases.push_back({lease.workspace, lease.lessee, lease.month});
}

void Batch::ReturnLease(Lease& lease, int64_t used_nano_usd, const std::string& memo) {
  const int64_t returned = lease.granted_nano_usd - used_nano_usd;
  SetLease(lease, used_nano_usd, lease.used_nano_usd);
  if (returned > 0) {
    Post(EntryKind::kLeaseReturn, Account::kHeld, Account::kFree, returned, lease.month,
         lease.lessee, memo);
  }
}

void Batch::RemoveLease(const LeaseName& name) {
  state_.leases.erase(LeaseKey(name));
  out_.leases.push_back(name);
}

Reply Batch::Execute(const TakeLease& take) {
  if (!IsValid(take) || !wallet_) return Refuse(Deny::kInvalid);
  return take.wanted_nano_usd == 0 ? GiveBack(take) : Enlarge(take);
}

Reply Batch::Enlarge(const TakeLease& take) {
  if (wallet_->frozen != Freeze::kNone) {
    Reply refused =
        Refuse(wallet_->frozen == Freeze::kFailedCheck ? Deny::kFrozenByCheck : Deny::kFrozen);
    refused.lease.recalled = true;
    return refused;
  }
  const LeaseName name{take.workspace, take.lessee, UtcMonth(now_us_)};
  // Requests are admitted in the month of their lease, on clocks that are a little apart.
  const int64_t end_us = UtcMonthStartUs(NextMonth(name.month)) - policy_.lease_margin_us;
  if (now_us_ >= end_us) return Refuse(Deny::kNoLease);
  Lease* lease = FindLease(name);
  const bool has_it = take.month == name.month;
  // It has lost count of a lease that the ledger still knows: a new one begins when that expires.
  if (lease != nullptr && !has_it && lease->used_nano_usd > 0) return Refuse(Deny::kNoLease);
  Lease fresh{name.workspace, name.lessee, name.month};
  if (lease == nullptr && has_it) {
    // A lease that has expired, or was given back with nothing left: it goes on from there.
    fresh.granted_nano_usd = fresh.used_nano_usd = take.used_nano_usd;
  }
  const Lease& now = lease ? *lease : fresh;
  const int64_t used = std::max(now.used_nano_usd, has_it ? take.used_nano_usd : 0);

  const std::optional<int64_t>& cap = wallet_->cap_nano_usd;
  const int64_t available = wallet_->available_nano_usd();
  const int64_t headroom = CapHeadroom(cap, name.month);
  const int64_t lessees = wallet_->leases + (now.reserved_nano_usd() == 0 ? 1 : 0);
  const int64_t share = std::max(kLeastShare, kSharesOfOneLease * lessees);
  const int64_t leased = wallet_->leased_nano_usd;
  int64_t limit = (available + leased) / share;
  if (cap) {
    const int64_t of_month = std::min(leased, FindOrCreateMonth(name.month).held_nano_usd);
    limit = std::min(limit, (headroom + of_month) / share);
  }
  const int64_t target = used + std::min(take.wanted_nano_usd, limit);
  int64_t more =
      std::clamp<int64_t>(target - now.granted_nano_usd, 0, std::min(available, headroom));
  const bool is_low =
      limit == 0 || std::min(available, headroom) - more < kLeasesLeft * lessees * limit;
  if (is_low) more = 0;
  Reply reply = Granted(name.month, now.granted_nano_usd + more);
  reply.lease.recalled = is_low;
  reply.lease.valid_ms =
      std::min(policy_.lease_ttl_us - policy_.lease_margin_us, end_us - now_us_) / 1000;
  if (lease == nullptr && more == 0) return reply;
  if (lease == nullptr) lease = &state_.leases.emplace(LeaseKey(name), fresh).first->second;
  lease->expires_us = std::max(lease->expires_us, now_us_ + policy_.lease_ttl_us);
  SetLease(*lease, lease->granted_nano_usd + more, lease->used_nano_usd);
  if (more > 0) {
    Post(EntryKind::kLeaseGrant, Account::kFree, Account::kHeld, more, name.month, name.lessee);
  }
  return reply;
}

Reply Batch::GiveBack(const TakeLease& take) {
  const LeaseName name{take.workspace, take.lessee, take.month};
  Lease* lease = take.month == 0 ? nullptr : FindLease(name);
  if (lease == nullptr) return Granted(take.month, take.used_nano_usd);
  // What the ledger does not know yet stays reserved for its requests until the lease expires.
  const int64_t used = std::max(lease->used_nano_usd, take.used_nano_usd);
  const int64_t kept = std::min(used, lease->granted_nano_usd);
  ReturnLease(*lease, kept, "given back");
  if (lease->reserved_nano_usd() == 0) RemoveLease(name);
  PayReceivable(take.lessee);
  return Granted(take.month, kept);
}

Reply Batch::Execute(const ExpireLease& expire) {
  if (!wallet_) return Refuse(Deny::kInvalid);
  const LeaseName name{expire.workspace, expire.lessee, expire.month};
  Lease* lease = FindLease(name);
  // Gone, or renewed since it was listed.
  if (lease == nullptr || lease->expires_us > now_us_) return Refuse(Deny::kInvalid);
  ReturnLease(*lease, lease->used_nano_usd, "expired");
  RemoveLease(name);
  PayReceivable(expire.lessee);
  Reply reply;
  reply.ok = true;
  return reply;
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

// As long as a month takes corrections, it takes what was admitted in it.
int32_t Batch::AdmittedMonth(const Admission& admission) const {
  const int32_t now = UtcMonth(now_us_);
  const bool is_open =
      now_us_ < UtcMonthStartUs(NextMonth(admission.month)) + policy_.month_grace_us;
  return is_open ? std::min(admission.month, now) : now;
}

Reply Batch::AdmitAgain(const Admission& admission, Hold& hold) {
  const Authorize& authorize = admission.authorize;
  if (hold.tombstone()) {
    if (hold.workspace != authorize.workspace) return Refuse(Deny::kIdReuse);
    // The caller got an error before the ledger knew of the request. What its router counts as
    // used leaves the lease, once.
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
  // Whether a closed hold takes the operation is up to that.
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
  // Its router may report it in the next month.
  hold.created_us =
      hold.month == UtcMonth(now_us_) ? now_us_ : UtcMonthStartUs(NextMonth(hold.month)) - 1;
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
  // A cap that was lowered after the lease was granted takes nothing away from its requests.
  if (covered > first) {
    stored.authorized_nano_usd = covered;
    Post(EntryKind::kExtend, Account::kFree, Account::kHeld, covered - first, stored.month, id);
  }
  return ReplyFor(stored);
}

}  // namespace tollgate::billing
