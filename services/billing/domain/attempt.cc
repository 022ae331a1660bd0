// Decision 52: an abandoned attempt charges nothing, and a call that ended in an error is free.
#include "services/billing/domain/batch.h"
#include "services/billing/domain/chain.h"

namespace tollgate::billing {

// The earlier attempt was abandoned: usage that it reported is free, and its further reports are
// refused. Its amount stays authorized.
void Batch::BeginAttempt(Hold& hold, int32_t attempt) {
  hold.attempt = attempt;
  hold.sequence = 0;
  hold.usage = Usage();
  KeepAlive(hold);
  MarkChanged(hold);
}

// The hold was settled or has expired before the gateway reported that its caller got an error.
Reply Batch::UndoCharge(const Void& op, Hold& hold) {
  if (hold.free() || hold.state == HoldState::kVoided) return ReplyFor(hold);
  if (now_us_ - hold.closed_us > policy_.late_settle_us) return ReplyFor(hold, Deny::kClosed);
  hold.outcome = Outcome::kFailedBeforeOutput;
  // Covers the new outcome by the hash chain even if no money moves.
  Post(EntryKind::kLateCorrection, Account::kControl, Account::kControl, 0, hold.month,
       hold.id.ToBytes(), "refused: " + op.reason.substr(0, 200), ClosingDetail(hold));
  GiveBack(hold, hold.charged_nano_usd);
  SetOverrun(hold, 0, hold.month);
  MarkCorrected(hold);
  return ReplyFor(hold);
}

}  // namespace tollgate::billing
