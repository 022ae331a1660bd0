// Whether a browser sent a request from a page of the dashboard, and not from another site that
// uses the visitor's cookie.
#pragma once

#include <string>
#include <string_view>

#include "common/http/exchange.h"

namespace tollgate::dashboard {

// public_url: the dashboard's address as browsers see it; empty: the request's Host. At least one
// of Sec-Fetch-Site and Origin is required, and neither may contradict.
bool IsSameOrigin(const http::HttpRequest& request, std::string_view public_url);

}  // namespace tollgate::dashboard
