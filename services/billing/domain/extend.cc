// Operations while the engine runs: extend and heartbeat.
#include <algorithm>

#include "services/billing/domain/batch.h"

namespace tollgate::billing {
namespace {

bool IsAtLeast(const Usage& now, const Usage& before) {
  return now.prompt >= before.prompt && now.completion >= before.completion;
}

}  // namespace

Reply Batch::Execute(const Extend& extend) {
  if (extend.authorized_total_nano_usd < 0) return Refuse(Deny::kInvalid);
  return ReportProgress(extend, extend.authorized_total_nano_usd);
}

Reply Batch::Execute(const Heartbeat& heartbeat) { return ReportProgress(heartbeat, std::nullopt); }

void Batch::KeepAlive(Hold& hold) {
  hold.expires_us = std::max(hold.expires_us, std::min(now_us_ + policy_.hold_ttl_us,
                                                       hold.created_us + policy_.hold_max_age_us));
}

template <typename Op>
Reply Batch::ReportProgress(const Op& op, std::optional<int64_t> authorized_total_nano_usd) {
  if (!IsValidUsage(op.usage)) return Refuse(Deny::kInvalid);
  Hold* hold = FindHold(op.request_id);
  if (!hold) return Refuse(Deny::kInvalid);
  if (hold->workspace != op.workspace) return Refuse(Deny::kIdReuse);
  if (hold->state != HoldState::kOpen || op.attempt < hold->attempt) {
    return ReplyFor(*hold, Deny::kClosed);
  }
  // An older sequence has no new usage. Its reply has the current amounts.
  if (op.sequence > hold->sequence) {
    hold->sequence = op.sequence;
    KeepAlive(*hold);
    if (IsAtLeast(op.usage, hold->usage)) hold->usage = op.usage;
    MarkChanged(*hold);
  }
  // A later heartbeat may have overtaken an extension. The extension still applies, since totals
  // only grow.
  const int64_t wanted = authorized_total_nano_usd.value_or(0);
  if (wanted > hold->authorized_nano_usd) {
    Raise(*hold, wanted - hold->authorized_nano_usd);
    MarkChanged(*hold);
  }
  Reply reply = ReplyFor(*hold);
  if (hold->authorized_nano_usd >= wanted) return reply;
  // Granted in part at most. The reply says why: the cap, the posted credit, or credit that other
  // requests hold.
  const std::optional<int64_t> cap = EffectiveCap(*wallet_, *hold);
  if (cap && *cap - FindOrCreateMonth(hold->month).spent_nano_usd < wanted) {
    reply.denied_by = Deny::kCap;
  } else if (hold->key_quota_nano_usd && QuotaHeadroom(*hold, hold->month) <= 0) {
    reply.denied_by = Deny::kQuota;
  } else if (wallet_->posted_nano_usd() < wanted) {
    reply.denied_by = Deny::kNoCredit;
  } else {
    reply.denied_by = Deny::kHeld;
    reply.retry_after_ms = policy_.held_retry_ms;
  }
  return reply;
}

}  // namespace tollgate::billing
