// Decision 52: whoever was given up on charges nothing, and a call that ended in an error is free.
#include "services/billing/domain/batch.h"
#include "services/billing/domain/chain.h"

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
  if (now_us_ - hold.closed_us > policy_.late_settle_us) return ReplyFor(hold, Deny::kClosed);
  hold.outcome = Outcome::kFailedBeforeOutput;
  // Brings the new outcome under the chain, also when no money moves.
  Post(EntryKind::kLateCorrection, Account::kControl, Account::kControl, 0, hold.month,
       hold.id.ToBytes(), "refused: " + op.reason.substr(0, 200), ClosingDetail(hold));
  GiveBack(hold, hold.charged_nano_usd);
  SetOverrun(hold, 0, hold.month);
  MarkCorrected(hold);
  return ReplyFor(hold);
}

}  // namespace tollgate::billing
