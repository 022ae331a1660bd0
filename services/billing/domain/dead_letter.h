// Settlements that the ledger has refused for good: evidence that someone may owe something. They
// are kept with the reason until a person resolves them (docs/design/ledger.md 6).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "services/billing/domain/operations.h"

namespace tollgate::billing {

// Not part of a stored operation: request id and workspace, which have columns of their own.
std::string EncodeSettle(const Settle& settle);
// Empty: not an encoded settle.
std::optional<Settle> DecodeSettle(std::string_view text, const Id& request_id,
                                   const std::string& workspace);

// The dead letter of a refused settle; empty where nothing is lost: it would have charged nothing,
// its caller's answer was a refusal, or a later try of the request has taken over. hold: that of
// the request, as it is now; null: there is none.
std::optional<DeadLetter> DeadLetterOf(const Settle& settle, const Reply& refused, const Hold* hold,
                                       int64_t at_us);

}  // namespace tollgate::billing
