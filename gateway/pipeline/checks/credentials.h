// Finds the virtual key in the headers of a request. See docs/contract.md "Authentication",
// decision 12.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "common/error/error.h"
#include "gateway/edge/endpoint.h"
#include "gateway/edge/exchange.h"

namespace tollgate::gateway {

// Returns the text of the only well-formed key, or 401 invalid_api_key. The view points into the
// request's headers.
Result<std::string_view> FindKey(const HttpRequest& request, CredentialRule rule,
                                 std::string_view brand,
                                 std::span<const std::string> legacy_prefixes);

}  // namespace tollgate::gateway
