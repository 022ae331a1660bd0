// Settlements that the ledger has refused permanently. Each one may mean uncharged usage, so it is
// kept with its reason until a person resolves it (docs/design/ledger.md 6).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "services/billing/domain/operations.h"

namespace tollgate::billing {

// Contains a valid admission, which may be the only price of the request. Does not contain request
// id and workspace, which have columns of their own.
std::string EncodeSettle(const Settle& settle);
// Returns an empty optional if the text is not an encoded settle.
std::optional<Settle> DecodeSettle(std::string_view text, const Id& request_id,
                                   const std::string& workspace);

// Returns the dead letter of a refused settle. Empty if nothing is lost: the settle would have
// charged nothing, the caller got an error, or a later attempt of the request has taken over. hold:
// the current hold of the request; null: it has none.
std::optional<DeadLetter> DeadLetterOf(const Settle& settle, const Reply& refused, const Hold* hold,
                                       int64_t at_us);

// Id of the adjustment that charges a request whose settle came too late. One per request, so that
// two of its dead letters cannot charge it twice.
std::string AdjustmentIdOf(const Id& request_id);

}  // namespace tollgate::billing
