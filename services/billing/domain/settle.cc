// Settle: charges the usage of a hold and closes it, or corrects an expired hold. Usage becomes a
// charge here.
#include <algorithm>

#include "common/base/clock.h"
#include "services/billing/domain/batch.h"
#include "services/billing/domain/chain.h"
#include "services/billing/domain/lease_rules.h"

namespace tollgate::billing {

bool IsValid(const Settle& settle) {
  return IsValidUsage(settle.usage) && settle.outcome != Outcome::kNone &&
         settle.engine.size() <= 128 && settle.first_token_us >= 0;
}

bool IsFree(Outcome outcome, const Usage& usage) {
  return outcome == Outcome::kFailedBeforeOutput || (usage.prompt == 0 && usage.completion == 0);
}

namespace {

int64_t CostNanoUsd(const Rates& rates, const Usage& usage) {
  return ChargeNanoUsd(CostPicoUsd(rates, usage.prompt, usage.completion));
}
int64_t CostNanoUsd(const Hold& hold) { return CostNanoUsd(hold.rates, hold.usage); }

bool IsExpired(const Hold& hold) {
  return hold.state == HoldState::kExpiredCharged || hold.state == HoldState::kExpiredVoid;
}

bool SameSettle(const Hold& hold, const Settle& settle) {
  return hold.outcome == settle.outcome && hold.usage == Clamped(settle.usage) &&
         hold.cut_by_credit == settle.cut_by_credit && hold.estimated == settle.estimated &&
         hold.engine == settle.engine;
}

// A settle recovered from a router's journal may be older than the last heartbeat, which the ledger
// has stored. It may raise counters but never lower one. Any other settle is final.
Usage SettledUsage(const Settle& settle, const Hold& hold) {
  Usage usage = Clamped(settle.usage);
  if (settle.outcome != Outcome::kRecovered) return usage;
  usage.prompt = std::max(usage.prompt, hold.usage.prompt);
  usage.cached = std::max(usage.cached, hold.usage.cached);
  usage.cache_write = std::max(usage.cache_write, hold.usage.cache_write);
  usage.completion = std::max(usage.completion, hold.usage.completion);
  usage.reasoning = std::max(usage.reasoning, hold.usage.reasoning);
  return Clamped(usage);
}

// Whether a closed hold already covers this settle: it is the settle that closed the hold, or one
// with less information. A router sends the latter if it crashed between the ledger's reply and the
// release of its slot.
bool IsCovered(const Hold& hold, const Settle& settle) {
  if (SameSettle(hold, settle)) return true;
  if (IsFree(settle.outcome, settle.usage) && hold.state == HoldState::kVoided) return true;
  if (settle.outcome == Outcome::kFailedBeforeOutput) return true;  // from a slot without delivery
  return settle.outcome == Outcome::kRecovered && !hold.free();
}

void CopySettle(const Settle& settle, Hold& hold) {
  hold.usage = SettledUsage(settle, hold);
  hold.outcome = settle.outcome;
  hold.cut_by_credit = settle.cut_by_credit;
  hold.estimated = settle.estimated;
  hold.engine = settle.engine;
  hold.first_token_us = settle.first_token_us;
  hold.sequence = std::max(hold.sequence, settle.sequence);
}

}  // namespace

Reply Batch::Execute(const Settle& settle) {
  if (!IsValid(settle)) return Refuse(Deny::kInvalid);
  Hold* hold = FindHold(settle.request_id);
  if (!hold) return Refuse(Deny::kInvalid);
  if (hold->workspace != settle.workspace) return Refuse(Deny::kIdReuse);
  if (settle.attempt < hold->attempt) return ReplyFor(*hold, Deny::kClosed);
  switch (hold->state) {
    case HoldState::kOpen:
      return SettleOpen(settle, *hold);
    case HoldState::kExpiredVoid:
      if (IsReplaced(*hold)) {
        // The caller has repeated the request under the same Idempotency-Key and pays for the
        // repetition.
        Settle free = settle;
        free.outcome = Outcome::kFailedBeforeOutput;
        return SettleLate(free, *hold);
      }
      [[fallthrough]];
    case HoldState::kExpiredCharged:
      return SettleLate(settle, *hold);
    case HoldState::kVoided:
    case HoldState::kSettled:
    case HoldState::kCorrected:
      if (IsCovered(*hold, settle)) return ReplyFor(*hold);
      // A release or refusal made the hold free: it cannot be charged later.
      return ReplyFor(*hold, hold->free() ? Deny::kClosed : Deny::kIdReuse);
  }
  return Refuse(Deny::kInvalid);
}

Reply Batch::SettleOpen(const Settle& settle, Hold& hold) {
  CopySettle(settle, hold);
  if (IsFree(settle.outcome, hold.usage)) {
    Release(hold, EntryKind::kVoid, "nothing was generated");
    Close(hold, HoldState::kVoided);
  } else {
    Charge(hold, EntryKind::kSettle);
    Close(hold, HoldState::kSettled);
  }
  return ReplyFor(hold);
}

void Batch::Charge(Hold& hold, EntryKind terminal) {
  const int64_t cost = CostNanoUsd(hold);
  // The engine may have generated more than the hold covers, so raise it once more. The operator
  // pays the overrun that credit does not cover (docs/design/ledger.md 4).
  if (cost > hold.authorized_nano_usd) Raise(hold, cost - hold.authorized_nano_usd);
  const int64_t charged = std::min(cost, hold.authorized_nano_usd);
  Release(hold, terminal, "");
  Capture(hold, EntryKind::kCharge, charged, hold.month);
  hold.overrun_nano_usd = cost - charged;
  if (hold.overrun_nano_usd > 0) {
    Post(EntryKind::kOverrun, Account::kOverrun, Account::kRevenue, hold.overrun_nano_usd,
         hold.month, hold.id.ToBytes());
  }
}

void Batch::Capture(Hold& hold, EntryKind kind, int64_t amount_nano_usd, int32_t month) {
  const int64_t granted = std::min(amount_nano_usd, wallet_->granted_nano_usd);
  const int64_t paid = amount_nano_usd - granted;
  const std::string id = hold.id.ToBytes();
  if (granted > 0) Post(kind, Account::kGranted, Account::kRevenue, granted, month, id);
  if (paid > 0) Post(kind, Account::kPaid, Account::kRevenue, paid, month, id);
  hold.charged_nano_usd += amount_nano_usd;
  hold.charged_granted_nano_usd += granted;
}

void Batch::GiveBack(Hold& hold, int64_t amount_nano_usd) {
  // If the hold's month was closed before the charge, the charge is in a later month.
  const int64_t of_its_month =
      std::min(amount_nano_usd, FindOrCreateMonth(hold.month).spent_nano_usd);
  GiveBack(hold, of_its_month, hold.month);
  GiveBack(hold, amount_nano_usd - of_its_month, UtcMonth(now_us_));
}

void Batch::GiveBack(Hold& hold, int64_t amount_nano_usd, int32_t month) {
  const int64_t to_paid =
      std::min(amount_nano_usd, hold.charged_nano_usd - hold.charged_granted_nano_usd);
  const int64_t to_granted = amount_nano_usd - to_paid;
  const std::string id = hold.id.ToBytes();
  const auto post = [&](Account account, int64_t amount) {
    if (amount > 0) {
      Post(EntryKind::kLateCorrection, Account::kRevenue, account, amount, month, id);
    }
  };
  post(Account::kPaid, to_paid);
  post(Account::kGranted, to_granted);
  hold.charged_nano_usd -= amount_nano_usd;
  hold.charged_granted_nano_usd -= to_granted;
}

void Batch::SetOverrun(Hold& hold, int64_t overrun_nano_usd, int32_t month) {
  const int64_t change = overrun_nano_usd - hold.overrun_nano_usd;
  hold.overrun_nano_usd = overrun_nano_usd;
  const std::string id = hold.id.ToBytes();
  if (change > 0) {
    Post(EntryKind::kOverrun, Account::kOverrun, Account::kRevenue, change, month, id);
  } else if (change < 0) {
    Post(EntryKind::kOverrun, Account::kRevenue, Account::kOverrun, -change, month, id);
  }
}

void Batch::MarkCorrected(Hold& hold) {
  hold.state = HoldState::kCorrected;
  MarkChanged(hold);
  out_.recorded_holds.push_back(hold.id);
  PayReceivable(hold.id.ToHex());
}

Reply Batch::SettleLate(const Settle& settle, Hold& hold) {
  if (now_us_ - hold.closed_us > policy_.late_settle_us) return ReplyFor(hold, Deny::kClosed);
  CopySettle(settle, hold);
  const int64_t cost = IsFree(settle.outcome, hold.usage) ? 0 : CostNanoUsd(hold);
  // A closed month takes no more charges: they count towards the current month.
  const bool month_open = now_us_ < UtcMonthStartUs(NextMonth(hold.month)) + policy_.month_grace_us;
  const int32_t month = month_open ? hold.month : UtcMonth(now_us_);
  // Covers the new usage by the hash chain even if no money moves.
  Post(EntryKind::kLateCorrection, Account::kControl, Account::kControl, 0, month,
       hold.id.ToBytes(), "", ClosingDetail(hold));
  const int64_t charged_before = hold.charged_nano_usd;
  if (cost > charged_before) {
    // Limited by the cap and the key's quota of that month. The operator pays the overrun that they
    // and the credit do not cover.
    const int64_t more =
        std::min({cost - charged_before, wallet_->available_nano_usd(),
                  CapHeadroom(EffectiveCap(*wallet_, hold), month), QuotaHeadroom(hold, month)});
    Capture(hold, EntryKind::kLateCorrection, more, month);
  } else if (cost < charged_before) {
    // The last heartbeat reported more usage than the exact settle.
    GiveBack(hold, charged_before - cost);
  }
  SetOverrun(hold, cost - hold.charged_nano_usd, month);
  MarkCorrected(hold);
  return ReplyFor(hold);
}

int64_t Batch::OwedNanoUsd(const Settle& settle, int32_t archived_month) {
  if (IsFree(settle.outcome, settle.usage)) return 0;
  if (const Hold* hold = FindHold(settle.request_id)) {
    const bool late = IsExpired(*hold) && now_us_ - hold->closed_us > policy_.late_settle_us;
    if (!late || hold->workspace != settle.workspace || settle.attempt < hold->attempt ||
        IsReplaced(*hold)) {
      return 0;
    }
    return CostNanoUsd(hold->rates, SettledUsage(settle, *hold)) - hold->charged_nano_usd;
  }
  const int64_t begun_us = settle.request_id.unix_ms() * 1000;
  // The clock that made the id may have been ahead of the ledger's, which dated the hold.
  if (!settle.admission || now_us_ - begun_us <= policy_.id_max_age_us ||
      UtcMonth(begun_us - kMaxClockSkewUs) <= archived_month) {
    return 0;
  }
  return CostNanoUsd(settle.admission->authorize.rates, Clamped(settle.usage));
}

}  // namespace tollgate::billing
