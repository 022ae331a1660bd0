// Void: closes a hold without a charge, because the request reached no engine or its caller got an
// error.
#include "services/billing/domain/batch.h"

namespace tollgate::billing {

Reply Batch::Execute(const Void& op) {
  if (op.request_id.empty()) return Refuse(Deny::kInvalid);
  if (Hold* hold = FindHold(op.request_id)) {
    if (hold->workspace != op.workspace) return Refuse(Deny::kIdReuse);
    if (hold->state == HoldState::kOpen) {
      Release(*hold, EntryKind::kVoid, op.reason);
      Close(*hold, HoldState::kVoided);
      return ReplyFor(*hold);
    }
    if (op.refused) return UndoCharge(op, *hold);
    const bool nothing_charged =
        hold->state == HoldState::kVoided || hold->state == HoldState::kExpiredVoid;
    return ReplyFor(*hold, nothing_charged ? Deny::kNone : Deny::kClosed);
  }
  const int64_t age_us = now_us_ - op.request_id.unix_ms() * 1000;
  if (age_us > policy_.id_max_age_us) return Refuse(Deny::kInvalid);
  // Writes no tombstone if a delayed authorize would be refused or is no longer to be expected:
  // callers without credit and outages must not fill the table. If one comes after all, its hold
  // expires without a charge.
  const bool may_be_admitted = wallet_ && wallet_->leases > 0 && op.refused;
  const int64_t max_age_us =
      may_be_admitted ? policy_.admitted_tombstone_max_age_us : policy_.tombstone_max_age_us;
  if (!wallet_ || wallet_->posted_nano_usd() <= 0 || age_us > max_age_us) {
    Reply nothing_held;
    nothing_held.ok = true;
    return nothing_held;
  }
  // The tombstone stops a delayed authorize of this id from opening a hold.
  Hold tombstone;
  tombstone.id = op.request_id;
  tombstone.workspace = op.workspace;
  tombstone.state = HoldState::kVoided;
  tombstone.created_us = now_us_;
  tombstone.closed_us = now_us_;
  const Hold& stored = state_.holds.emplace(op.request_id, std::move(tombstone)).first->second;
  out_.new_holds.push_back(op.request_id);
  return ReplyFor(stored);
}

}  // namespace tollgate::billing
