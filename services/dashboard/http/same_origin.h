// Whether a browser sent a request from a page of the dashboard itself, and not from another site
// that uses the visitor's cookie.
#pragma once

#include <string>
#include <string_view>

#include "common/http/exchange.h"

namespace tollgate::dashboard {

// public_url: the dashboard's address as browsers see it; empty: what the request names as Host.
// Sec-Fetch-Site and Origin must not contradict, and one of them must be there.
bool IsSameOrigin(const http::HttpRequest& request, std::string_view public_url);

}  // namespace tollgate::dashboard
