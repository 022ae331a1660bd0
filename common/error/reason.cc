#include "common/error/reason.h"

#include <array>

namespace tollgate {
namespace {

struct ReasonRow {
  Reason reason;
  std::string_view name;
};

constexpr std::array<ReasonRow, kReasonCount> kReasons = {{
    {Reason::kNone, ""},
    {Reason::kNoKey, "no_key"},
    {Reason::kMalformedKey, "malformed_key"},
    {Reason::kUnknownKey, "unknown_key"},
    {Reason::kRevokedKey, "revoked_key"},
    {Reason::kExpiredKey, "expired_key"},
    {Reason::kDisabledKey, "disabled_key"},
    {Reason::kAllowedAddresses, "allowed_addresses"},
    {Reason::kUnknownKeys, "unknown_keys"},
    {Reason::kNoEndpoint, "no_endpoint"},
    {Reason::kNoGeneration, "no_generation"},
    {Reason::kUnknownModel, "unknown_model"},
    {Reason::kLegacyPrefix, "legacy_prefix"},
    {Reason::kForeignModel, "foreign_model"},
    {Reason::kAllowedModels, "allowed_models"},
    {Reason::kBodyTooLarge, "body_too_large"},
    {Reason::kIdempotencyBody, "idempotency_body"},
    {Reason::kIdempotencyRunning, "idempotency_running"},
    {Reason::kIdempotencyGone, "idempotency_gone"},
    {Reason::kRequests, "requests"},
    {Reason::kTokens, "tokens"},
    {Reason::kConcurrency, "concurrency"},
    {Reason::kRefusals, "refusals"},
    {Reason::kModelRefusals, "model_refusals"},
    {Reason::kReports, "reports"},
    {Reason::kBalance, "balance"},
    {Reason::kCap, "cap"},
    {Reason::kQuota, "quota"},
    {Reason::kHeld, "held"},
    {Reason::kReloading, "reloading"},
    {Reason::kFrozen, "frozen"},
    {Reason::kFrozenByCheck, "frozen_by_check"},
    {Reason::kNotServing, "not_serving"},
    {Reason::kEnginesDown, "engines_down"},
    {Reason::kQueueFull, "queue_full"},
    {Reason::kEngineFull, "engine_full"},
    {Reason::kEngineRefused, "engine_refused"},
    {Reason::kEngineLacksModel, "engine_lacks_model"},
    {Reason::kNotReady, "not_ready"},
    {Reason::kClock, "clock"},
    {Reason::kStopping, "stopping"},
    {Reason::kMemory, "memory"},
    {Reason::kDecoders, "decoders"},
    {Reason::kAuthUnavailable, "auth_unavailable"},
    {Reason::kBillingUnavailable, "billing_unavailable"},
    {Reason::kRouterUnavailable, "router_unavailable"},
    {Reason::kHoldClosed, "hold_closed"},
    {Reason::kUsageNotRecorded, "usage_not_recorded"},
}};

constexpr bool ReasonsAreInOrder() {
  for (size_t i = 0; i < kReasons.size(); ++i) {
    if (static_cast<size_t>(kReasons[i].reason) != i) return false;
  }
  return true;
}
static_assert(ReasonsAreInOrder(), "kReasons is indexed by Reason");

}  // namespace

std::string_view NameOf(Reason reason) { return kReasons[static_cast<size_t>(reason)].name; }

Reason ReasonByName(std::string_view name) {
  for (const ReasonRow& row : kReasons) {
    if (row.name == name) return row.reason;
  }
  return Reason::kNone;
}

}  // namespace tollgate
