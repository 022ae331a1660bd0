// Leases: credit of a workspace that a router may spend without asking (docs/design/ledger.md 13).
#include <algorithm>

#include "common/base/clock.h"
#include "services/billing/domain/batch.h"
#include "services/billing/domain/lease_rules.h"

namespace tollgate::billing {
namespace {

// Part of the credit not held by requests that one lease may reserve: 1/100, or less with more than
// 12 lessees, so that all leases together reserve about 1/8 of it at most.
constexpr int64_t kLeastShare = 100;
constexpr int64_t kSharesOfOneLease = 8;
// Credit is low when it does not cover this many further leases for each lessee.
constexpr int64_t kLeasesLeft = 4;

bool IsValid(const TakeLease& take) {
  return IsLessee(take.lessee) && IsLeaseAmount(take.used_nano_usd) &&
         IsLeaseAmount(take.wanted_nano_usd) && IsLeaseAmount(take.settled_nano_usd) &&
         take.settled_nano_usd <= take.used_nano_usd && (take.month == 0 || IsMonth(take.month));
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

// A settled request may not have been taken from the lease: its hold existed, or another try had
// taken over. Its amount would stay reserved as long as the lease is renewed.
void Batch::ReleaseSettled(Lease& lease, int64_t settled_nano_usd) {
  const int64_t used = std::min(settled_nano_usd, lease.granted_nano_usd);
  const int64_t released = used - lease.used_nano_usd;
  if (released <= 0) return;
  SetLease(lease, lease.granted_nano_usd, used);
  Post(EntryKind::kLeaseReturn, Account::kHeld, Account::kFree, released, lease.month, lease.lessee,
       "settled without the lease");
  PayReceivable(lease.lessee);
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
  // Requests are admitted in the month of their lease, and clocks differ a little, so leases end
  // early.
  const int64_t end_us = UtcMonthStartUs(NextMonth(name.month)) - policy_.lease_margin_us;
  if (now_us_ >= end_us) return Refuse(Deny::kNoLease);
  Lease* lease = FindLease(name);
  const bool has_it = take.month == name.month;
  // The lessee has lost the state of a lease that the ledger still has. It gets a new one when the
  // old lease expires.
  if (lease != nullptr && !has_it && lease->used_nano_usd > 0) return Refuse(Deny::kNoLease);
  if (lease != nullptr && has_it) ReleaseSettled(*lease, take.settled_nano_usd);
  Lease fresh{name.workspace, name.lessee, name.month};
  if (lease == nullptr && has_it) {
    // The lease has expired, or was given back completely: it continues from the amount used.
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
  ReleaseSettled(*lease, take.settled_nano_usd);
  // Amounts used by requests that the ledger does not know yet stay reserved until the lease
  // expires.
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
  // The lease was given back, or renewed after it was listed.
  if (lease == nullptr || lease->expires_us > now_us_) return Refuse(Deny::kInvalid);
  ReturnLease(*lease, lease->used_nano_usd, "expired");
  RemoveLease(name);
  PayReceivable(expire.lessee);
  Reply reply;
  reply.ok = true;
  return reply;
}

}  // namespace tollgate::billing
