// Values of admin requests as text: resource names, request ids, amounts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/admin/failure.h"

namespace tollgate::admin {

using Parts = std::vector<std::string>;
// The parts that match * in the pattern: MatchName("workspaces/*/payments/*",
// "workspaces/acme/payments/x") is {"acme", "x"}. nullopt if the name has another form, a part is
// not 1 to 128 of [A-Za-z0-9._-], or the part after "workspaces/" is not a workspace id.
std::optional<Parts> MatchName(std::string_view pattern, std::string_view name);
// MatchName as a result, with INVALID_ARGUMENT on this field.
AdminResult<Parts> NameParts(std::string_view pattern, std::string_view name,
                             std::string_view field);

// 1 to 64 of [A-Za-z0-9_-].
bool IsRequestId(std::string_view text);
AdminResult<std::string> RequiredRequestId(std::string_view text,
                                           std::string_view field = "request_id");

// "-?(0|[1-9][0-9]*)(\.[0-9]{1,9})?" as nano-USD.
AdminResult<int64_t> ParseUsd(std::string_view text, std::string_view field);
// Exact, with at least two decimals: "12.50", "0.0000375".
std::string FormatUsd(int64_t nano_usd);

}  // namespace tollgate::admin
