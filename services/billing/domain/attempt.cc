// Decision 52: whoever was given up on charges nothing, and a call that ended in an error is free.
#include "services/billing/domain/batch.h"

namespace tollgate::billing {

// The try before it was given up on: what it has reported is free, and what it will report is
// refused. Its amount stays authorized.
void Batch::BeginAttempt(Hold& hold, int32_t attempt) {
  hold.attempt = attempt;
  hold.sequence = 0;
  hold.usage = Usage();
  KeepAlive(hold);
  MarkChanged(hold);
}

// The hold was settled or has expired before the gateway could say that its caller got an error.
Reply Batch::UndoCharge(const Void& op, Hold& hold) {
  if (hold.free() || hold.state == HoldState::kVoided) return ReplyFor(hold);
  if (at_us_ - hold.closed_us > policy_.late_settle_us) return ReplyFor(hold, Deny::kClosed);
  GiveBack(hold, hold.charged_nano_usd, "refused: " + op.reason.substr(0, 200));
  SetOverrun(hold, 0, hold.month);
  hold.outcome = Outcome::kFailedBeforeOutput;
  Correct(hold);
  return ReplyFor(hold);
}

}  // namespace tollgate::billing
