// Why a request was refused. An error row says what the caller sees, a reason what the operator can
// change. Reasons are for logs, traces, metrics and the dashboard; no response has them.
#pragma once

#include <cstdint>
#include <string_view>

namespace tollgate {

// docs/operations/why-refused.md has the meaning of each one.
enum class Reason : uint8_t {
  kNone,  // the error's code says it all
  // The key.
  kNoKey,
  kMalformedKey,
  kUnknownKey,
  kRevokedKey,
  kExpiredKey,
  kDisabledKey,
  kAllowedAddresses,
  kUnknownKeys,
  // The request.
  kNoEndpoint,
  kNoGeneration,
  kUnknownModel,
  kLegacyPrefix,
  kForeignModel,
  kAllowedModels,
  kBodyTooLarge,
  kIdempotencyBody,
  kIdempotencyRunning,
  kIdempotencyGone,
  // Limits.
  kRequests,
  kTokens,
  kConcurrency,
  kRefusals,
  kModelRefusals,
  kReports,
  // Credit.
  kBalance,
  kCap,
  kQuota,
  kHeld,
  kReloading,
  kFrozen,
  kFrozenByCheck,
  // Models and engines.
  kNotServing,
  kEnginesDown,
  kQueueFull,
  kEngineFull,
  kEngineRefused,
  kEngineLacksModel,
  // Tollgate's own parts.
  kNotReady,
  kClock,
  kStopping,
  kMemory,
  kDecoders,
  kAuthUnavailable,
  kBillingUnavailable,
  kRouterUnavailable,
  kHoldClosed,
  kUsageNotRecorded,
};
inline constexpr int kReasonCount = static_cast<int>(Reason::kUsageNotRecorded) + 1;

// For example "queue_full"; empty for kNone.
std::string_view NameOf(Reason reason);
// kNone for a name that this version does not know.
Reason ReasonByName(std::string_view name);

}  // namespace tollgate
