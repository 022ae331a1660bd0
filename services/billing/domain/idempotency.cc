// Decisions 43 and 59: the same Idempotency-Key and body within a day are never billed twice.
#include "services/billing/domain/batch.h"

namespace tollgate::billing {
namespace {

// Whether the request ended without a charge, so that another one may take its place.
bool EndedFree(const Hold& hold) {
  return hold.tombstone() || hold.free() || hold.state == HoldState::kVoided ||
         hold.state == HoldState::kExpiredVoid;
}

}  // namespace

Deny Batch::FindIdempotencyConflict(const Authorize& authorize) {
  // A check opens no hold, so it bills nothing.
  if (authorize.idempotency_key_digest.empty() || authorize.check_only) return Deny::kNone;
  const auto found = state_.idempotency_keys.find(
      IdempotencyRowKey(authorize.workspace, authorize.idempotency_key_digest));
  if (found == state_.idempotency_keys.end()) return Deny::kNone;
  const IdempotencyKey& row = found->second;
  if (now_us_ - row.created_us >= policy_.idempotency_us) return Deny::kNone;
  if (row.request_id == authorize.request_id) return Deny::kNone;
  if (row.body_digest != authorize.idempotency_body_digest) return Deny::kIdempotencyBody;
  const Hold* hold = FindHold(row.request_id);
  if (hold == nullptr || EndedFree(*hold)) return Deny::kNone;
  return hold->state == HoldState::kOpen ? Deny::kIdempotencyRunning : Deny::kIdempotencyDone;
}

void Batch::TakeIdempotencyKey(const Authorize& authorize) {
  if (authorize.idempotency_key_digest.empty()) return;
  const std::string key = IdempotencyRowKey(authorize.workspace, authorize.idempotency_key_digest);
  const auto found = state_.idempotency_keys.find(key);
  before_.idempotency_keys.emplace(
      key, found == state_.idempotency_keys.end() ? std::nullopt : std::optional(found->second));
  state_.idempotency_keys[key] = {authorize.workspace, authorize.idempotency_key_digest,
                                  authorize.request_id, authorize.idempotency_body_digest, now_us_};
  out_.idempotency_keys.push_back(key);
}

bool Batch::IsReplaced(const Hold& hold) const {
  if (hold.idempotency_key_digest.empty()) return false;
  const auto found =
      state_.idempotency_keys.find(IdempotencyRowKey(hold.workspace, hold.idempotency_key_digest));
  return found != state_.idempotency_keys.end() && found->second.request_id != hold.id &&
         found->second.created_us - hold.created_us < policy_.idempotency_us;
}

}  // namespace tollgate::billing
