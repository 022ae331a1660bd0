// POST /v1/responses: the request.
#pragma once

#include <map>
#include <string>

#include "common/error/error.h"
#include "common/json/json.h"
#include "gateway/pipeline/canonical_request.h"

namespace tollgate::gateway {

// What the response object needs of the request.
struct ResponsesState : SurfaceState {
  // The members of the response object that echo the request (docs/design/wire.md 5.2), without
  // braces.
  std::string echo_json;
  // See ResponsesTools in tools.h.
  std::map<std::string, std::string> namespaces;
};

// See docs/design/wire.md 5.1, 7.3, decisions 17, 18, 27, 33. The state is a ResponsesState.
Result<CanonicalRequest> ParseResponsesRequest(const json::Document& body);

}  // namespace tollgate::gateway
