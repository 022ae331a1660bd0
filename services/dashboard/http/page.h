// The one page that there is for now, and the headers that guard every answer.
#pragma once

#include <string>
#include <string_view>

#include "common/http/exchange.h"

namespace tollgate::dashboard {

// base_url of the public API; may be empty.
std::string PageHtml(std::string_view base_url);
std::string_view PageCss();

// Content policy, no sniffing, no framing, no caching.
void AddSecurityHeaders(http::Headers& headers);

// As text inside HTML.
std::string EscapeHtml(std::string_view text);

}  // namespace tollgate::dashboard
