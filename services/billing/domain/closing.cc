// How holds end: settled, voided, expired, corrected late. spec: reliability.md 1.3, 1.5, 1.7.
#include <algorithm>

#include "common/base/clock.h"
#include "services/billing/domain/batch.h"

namespace tollgate::billing {
namespace {

// What a settle asks to be charged for.
bool ForFree(const Op& op) {
  return op.outcome == Outcome::kFailedBeforeOutput ||
         (op.usage.prompt == 0 && op.usage.completion == 0);
}

// Parts are no larger than their whole, whatever an engine says.
Usage Clamped(Usage usage) {
  usage.cached = std::min(usage.cached, usage.prompt);
  usage.cache_write = std::min(usage.cache_write, usage.prompt);
  usage.reasoning = std::min(usage.reasoning, usage.completion);
  return usage;
}

bool SameSettle(const Hold& hold, const Op& op) {
  return hold.outcome == op.outcome && hold.usage == Clamped(op.usage) &&
         hold.cut_by_credit == op.cut_by_credit && hold.estimated == op.estimated &&
         hold.engine == op.engine;
}

void TakeSettle(Hold& hold, const Op& op) {
  hold.outcome = op.outcome;
  hold.usage = Clamped(op.usage);
  hold.cut_by_credit = op.cut_by_credit;
  hold.estimated = op.estimated;
  hold.engine = op.engine;
  hold.sequence = std::max(hold.sequence, op.sequence);
}

Reply Standing(const Hold& hold, Deny denied_by = Deny::kNone) {
  Reply reply;
  reply.ok = denied_by == Deny::kNone;
  reply.denied_by = denied_by;
  reply.authorized = hold.authorized;
  reply.charged = hold.charged;
  return reply;
}

int32_t NextMonth(int32_t month) { return month % 100 == 12 ? month + 89 : month + 1; }

}  // namespace

void Batch::Close(Hold& hold, HoldState state) {
  hold.state = state;
  hold.closed_us = at_us_;
  --wallet_->open_holds;
  Changed(hold);
  out_.recorded_holds.push_back(hold.id);
}

void Batch::GiveBack(Hold& hold, EntryKind terminal, const std::string& reason) {
  Post(terminal, Account::kHeld, Account::kFree, hold.authorized, hold.month, hold.id.ToBytes(),
       reason.substr(0, 256));
}

void Batch::Burn(Hold& hold, EntryKind kind, int64_t amount, int32_t month) {
  const int64_t granted = std::min(amount, wallet_->granted);
  const std::string id = hold.id.ToBytes();
  if (granted > 0) Post(kind, Account::kGranted, Account::kRevenue, granted, month, id);
  if (amount > granted) Post(kind, Account::kPaid, Account::kRevenue, amount - granted, month, id);
  hold.charged += amount;
  hold.charged_granted += granted;
}

void Batch::Charge(Hold& hold, EntryKind terminal) {
  const int64_t cost =
      ChargeNano(tollgate::CostPico(hold.rates, hold.usage.prompt, hold.usage.completion));
  // The engine may have gone past what was reserved: one last extension, and what does not fit is
  // the operator's loss (reliability.md 1.4).
  if (cost > hold.authorized) Grow(hold, cost - hold.authorized);
  const int64_t charged = std::min(cost, hold.authorized);
  GiveBack(hold, terminal, "");
  Burn(hold, EntryKind::kCharge, charged, hold.month);
  hold.overrun = cost - charged;
  if (hold.overrun > 0) {
    Post(EntryKind::kOverrun, Account::kOverrun, Account::kRevenue, hold.overrun, hold.month,
         hold.id.ToBytes());
  }
}

Reply Batch::Settle(const Op& op) {
  if (!Sane(op.usage) || op.outcome == Outcome::kNone || op.engine.size() > 128) {
    return Refuse(Deny::kInvalid);
  }
  Hold* hold = FindHold(op.id);
  if (!hold) return Refuse(Deny::kInvalid);
  if (hold->workspace != op.workspace) return Refuse(Deny::kIdReuse);
  switch (hold->state) {
    case HoldState::kOpen:
      return SettleOpen(op, *hold);
    case HoldState::kExpiredCharged:
    case HoldState::kExpiredVoid:
      return SettleLate(op, *hold);
    case HoldState::kVoided:
      // Voided by a void: nothing can be charged any more. By a settle: as every settled one.
      if (hold->outcome == Outcome::kNone) return Standing(*hold, Deny::kClosed);
      [[fallthrough]];
    case HoldState::kSettled:
    case HoldState::kCorrected:
      return Standing(*hold, SameSettle(*hold, op) ? Deny::kNone : Deny::kIdReuse);
  }
  return Refuse(Deny::kInvalid);
}

Reply Batch::SettleOpen(const Op& op, Hold& hold) {
  TakeSettle(hold, op);
  if (ForFree(op)) {
    GiveBack(hold, EntryKind::kVoid, "nothing was generated");
    Close(hold, HoldState::kVoided);
  } else {
    Charge(hold, EntryKind::kSettle);
    Close(hold, HoldState::kSettled);
  }
  return Standing(hold);
}

Reply Batch::SettleLate(const Op& op, Hold& hold) {
  if (at_us_ - hold.closed_us > policy_.late_us) return Standing(hold, Deny::kClosed);
  TakeSettle(hold, op);
  const int64_t cost =
      ForFree(op)
          ? 0
          : ChargeNano(tollgate::CostPico(hold.rates, hold.usage.prompt, hold.usage.completion));
  // A month that is closed takes no more corrections: the current one does.
  const bool month_open = at_us_ < UtcMonthStartUs(NextMonth(hold.month)) + policy_.month_grace_us;
  const int32_t month = month_open ? hold.month : UtcMonth(at_us_);
  const std::string id = hold.id.ToBytes();
  const int64_t already = hold.charged;
  const int64_t borne = hold.overrun;
  if (cost > already) {
    // In the cap of the month that takes it; what does not fit is the operator's loss.
    const int64_t take =
        std::min({cost - already, wallet_->available(), Room(RunningCap(*wallet_, hold), month)});
    Burn(hold, EntryKind::kLateCorrection, take, month);
  } else if (cost < already) {
    // The last sign of life claimed more than there was: paid credit comes back first, since it was
    // burned last.
    const int64_t back = already - cost;
    const int64_t to_paid = std::min(back, already - hold.charged_granted);
    if (to_paid > 0) {
      Post(EntryKind::kLateCorrection, Account::kRevenue, Account::kPaid, to_paid, hold.month, id);
    }
    if (back > to_paid) {
      Post(EntryKind::kLateCorrection, Account::kRevenue, Account::kGranted, back - to_paid,
           hold.month, id);
    }
    hold.charged -= back;
    hold.charged_granted -= back - to_paid;
  }
  hold.overrun = cost - hold.charged;
  if (hold.overrun > borne) {
    Post(EntryKind::kOverrun, Account::kOverrun, Account::kRevenue, hold.overrun - borne, month,
         id);
  } else if (hold.overrun < borne) {
    Post(EntryKind::kOverrun, Account::kRevenue, Account::kOverrun, borne - hold.overrun, month,
         id);
  }
  hold.state = HoldState::kCorrected;
  Changed(hold);
  out_.recorded_holds.push_back(hold.id);
  return Standing(hold);
}

Reply Batch::Void(const Op& op) {
  if (op.id.empty()) return Refuse(Deny::kInvalid);
  if (Hold* hold = FindHold(op.id)) {
    if (hold->workspace != op.workspace) return Refuse(Deny::kIdReuse);
    if (hold->state == HoldState::kOpen) {
      GiveBack(*hold, EntryKind::kVoid, op.reason);
      Close(*hold, HoldState::kVoided);
      return Standing(*hold);
    }
    const bool nothing_charged =
        hold->state == HoldState::kVoided || hold->state == HoldState::kExpiredVoid;
    return Standing(*hold, nothing_charged ? Deny::kNone : Deny::kClosed);
  }
  if (at_us_ - op.id.unix_ms() * 1000 > policy_.id_age_us) return Refuse(Deny::kInvalid);
  // A tombstone: the authorize may still be on its way and must not open a hold any more.
  Hold tombstone;
  tombstone.id = op.id;
  tombstone.workspace = op.workspace;
  tombstone.state = HoldState::kVoided;
  tombstone.created_us = at_us_;
  tombstone.closed_us = at_us_;
  const Hold& kept = state_.holds.emplace(op.id, std::move(tombstone)).first->second;
  out_.new_holds.push_back(op.id);
  return Standing(kept);
}

Reply Batch::Expire(const Op& op) {
  Hold* hold = FindHold(op.id);
  if (!hold || hold->workspace != op.workspace) return Refuse(Deny::kInvalid);
  if (hold->state != HoldState::kOpen) return Standing(*hold, Deny::kClosed);
  if (hold->expires_us > at_us_) return Standing(*hold, Deny::kInvalid);  // it gave a sign of life
  if (hold->usage.prompt == 0 && hold->usage.completion == 0) {
    GiveBack(*hold, EntryKind::kExpireVoid, "");
    Close(*hold, HoldState::kExpiredVoid);
  } else {
    hold->usage = Clamped(hold->usage);
    hold->estimated = true;
    Charge(*hold, EntryKind::kExpireCharge);
    Close(*hold, HoldState::kExpiredCharged);
  }
  return Standing(*hold);
}

}  // namespace tollgate::billing
