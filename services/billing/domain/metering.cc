// While the engine runs: extensions and signs of life.
#include <algorithm>
#include <limits>

#include "services/billing/domain/batch.h"

namespace tollgate::billing {
namespace {

bool AtLeast(const Usage& now, const Usage& before) {
  return now.prompt >= before.prompt && now.completion >= before.completion;
}

}  // namespace

Reply Batch::Progress(const Op& op) {
  if (!Sane(op.usage) || op.authorized_total < 0) return Refuse(Deny::kInvalid);
  Hold* hold = FindHold(op.id);
  if (!hold) return Refuse(Deny::kInvalid);
  if (hold->workspace != op.workspace) return Refuse(Deny::kIdReuse);
  if (hold->state != HoldState::kOpen) {
    Reply closed = Refuse(Deny::kClosed);
    closed.authorized = hold->authorized;
    closed.charged = hold->charged;
    return closed;
  }
  // An older sequence changes nothing, and is told how things stand.
  if (op.sequence > hold->sequence) {
    hold->sequence = op.sequence;
    hold->expires_us =
        std::max(hold->expires_us,
                 std::min(at_us_ + policy_.hold_ttl_us, hold->created_us + policy_.hold_life_us));
    if (AtLeast(op.usage, hold->usage)) hold->usage = op.usage;
    if (op.kind == OpKind::kExtend) Grow(*hold, op.authorized_total - hold->authorized);
    Changed(*hold);
  }
  Reply reply;
  reply.authorized = hold->authorized;
  reply.ok = op.kind == OpKind::kHeartbeat || hold->authorized >= op.authorized_total;
  if (reply.ok) return reply;
  // What stands in the way: the cap, the credit, or other requests that hold it for now.
  const std::optional<int64_t> cap = RunningCap(*wallet_, *hold);
  if (cap && *cap - MonthOf(hold->month).spent < op.authorized_total) {
    reply.denied_by = Deny::kCap;
  } else if (wallet_->posted() < op.authorized_total) {
    reply.denied_by = Deny::kNoCredit;
  } else {
    reply.denied_by = Deny::kHeld;
    reply.retry_after_ms = policy_.held_retry_ms;
  }
  return reply;
}

}  // namespace tollgate::billing
