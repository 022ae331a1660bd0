// POST /v1/completions: the request.
#pragma once

#include "common/error/error.h"
#include "common/json/json.h"
#include "gateway/pipeline/canonical_request.h"

namespace tollgate::gateway {

Result<CanonicalRequest> ParseCompletionRequest(const json::Document& body);

}  // namespace tollgate::gateway
