// Expire: closes a hold that has had no heartbeat for too long. Charges its last reported usage.
#include "services/billing/domain/batch.h"

namespace tollgate::billing {

Reply Batch::Execute(const Expire& expire) {
  Hold* hold = FindHold(expire.request_id);
  if (!hold || hold->workspace != expire.workspace) return Refuse(Deny::kInvalid);
  if (hold->state != HoldState::kOpen) return ReplyFor(*hold, Deny::kClosed);
  // A heartbeat postponed the expiry after the hold was listed.
  if (hold->expires_us > now_us_) return ReplyFor(*hold, Deny::kInvalid);
  // Nothing was delivered: an answer that is not streamed is delivered only at its end (decision
  // 52).
  if (hold->usage.completion == 0 || !hold->streamed) {
    Release(*hold, EntryKind::kExpireVoid, "");
    Close(*hold, HoldState::kExpiredVoid);
  } else {
    hold->usage = Clamped(hold->usage);
    hold->estimated = true;
    Charge(*hold, EntryKind::kExpireCharge);
    Close(*hold, HoldState::kExpiredCharged);
  }
  return ReplyFor(*hold);
}

}  // namespace tollgate::billing
