// The page shown if the web application is not built, and the security headers of every response.
#pragma once

#include <string>
#include <string_view>

#include "common/http/exchange.h"

namespace tollgate::dashboard {

// base_url: address of the public API; empty shows a placeholder.
std::string PageHtml(std::string_view base_url);
std::string_view PageCss();

// Adds headers against foreign content, sniffing, framing and caching.
void AddSecurityHeaders(http::Headers& headers);

// Escapes text for HTML content and attributes.
std::string EscapeHtml(std::string_view text);

}  // namespace tollgate::dashboard
