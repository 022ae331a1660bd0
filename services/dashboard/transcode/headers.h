// Which HTTP headers become metadata of a call, and which metadata become headers of the response.
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

// Credentials end here: authorization, cookie and our own keys are never forwarded. Fails with
// "invalid binary header …".
BasicResult<Metadata, std::string> ForwardedMetadata(const http::HttpRequest& request);

// Of Grpc-Timeout, in nanoseconds; 0: none. Fails with "invalid grpc-timeout: …".
BasicResult<int64_t, std::string> TimeoutNs(const http::HttpRequest& request);

// Whether the request accepts trailers (TE).
bool AcceptsTrailers(const http::HttpRequest& request);

// "Grpc-Metadata-" or "Grpc-Trailer-" and the key, for each metadatum but those of gRPC itself.
http::Headers HeadersOf(const Metadata& metadata, std::string_view prefix);

}  // namespace tollgate::transcode
