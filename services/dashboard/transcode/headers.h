// Decides which HTTP headers become metadata of a call, and which metadata becomes response
// headers.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/result.h"
#include "common/http/exchange.h"

namespace tollgate::transcode {

using Metadata = std::vector<std::pair<std::string, std::string>>;

// Credentials (authorization, cookie and Tollgate's own keys) are never forwarded. Fails with
// "invalid binary header …".
BasicResult<Metadata, std::string> ForwardedMetadata(const http::HttpRequest& request);

// Grpc-Timeout in nanoseconds; 0: none. Fails with "invalid grpc-timeout: …".
BasicResult<int64_t, std::string> TimeoutNs(const http::HttpRequest& request);

// Whether the request accepts trailers (TE).
bool AcceptsTrailers(const http::HttpRequest& request);

// Prefixes each key with "Grpc-Metadata-" or "Grpc-Trailer-"; leaves out gRPC's own keys.
http::Headers HeadersOf(const Metadata& metadata, std::string_view prefix);

}  // namespace tollgate::transcode
