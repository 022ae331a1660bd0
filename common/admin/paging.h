// Pages of lists in the admin API: newest first, with opaque tokens.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/admin/failure.h"

namespace tollgate::admin {

// 0: 50; above 200: 200; negative: INVALID_ARGUMENT.
AdminResult<int> PageSize(int32_t requested);

// A token that names a position and is bound to the parameters of the list (method, parent, filter,
// caller): another list refuses it. It is not secret.
std::string EncodePageToken(std::string_view binding, std::string_view position);
// Returns the position; "" for an empty token. INVALID_ARGUMENT on page_token for a token of
// another list.
AdminResult<std::string> DecodePageToken(std::string_view binding, std::string_view token);

}  // namespace tollgate::admin
