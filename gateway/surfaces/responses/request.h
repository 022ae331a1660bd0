// POST /v1/responses: the request.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "common/error/error.h"
#include "common/json/json.h"
#include "gateway/pipeline/surface.h"
#include "gateway/surfaces/responses/sealed_reasoning.h"

namespace tollgate::gateway {

// Data of the request that the response object needs.
struct ResponsesState : SurfaceState {
  // The members of the response object that echo the request (docs/design/wire.md 5.2), without
  // braces.
  std::string echo_json;
  // See ResponsesTools in tools.h.
  std::map<std::string, std::string> namespaces;
  // Seals the response's reasoning items for the workspace and the answering model. Null: the
  // client did not ask for it.
  std::shared_ptr<const ReasoningKeys> seal_keys;
  std::string workspace;
};

// See docs/design/wire.md 5.1, 7.3, decisions 17, 18, 27, 33. The state is a ResponsesState.
Result<CanonicalRequest> ParseResponsesRequest(const json::Document& body,
                                               const ParseContext& context = {});

}  // namespace tollgate::gateway
