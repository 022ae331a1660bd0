// Stage: looks up the request's virtual key and checks that it is active.
#pragma once

#include <cstdint>

#include "common/error/error.h"
#include "gateway/edge/endpoint.h"
#include "gateway/edge/exchange.h"
#include "gateway/pipeline/request_context.h"
#include "gateway/worker/worker.h"

namespace tollgate::gateway {

// Fails with 401 invalid_api_key, 403 virtual_key_blocked, or 503 when auth is unreachable and the
// cache cannot answer. Sets context.key.
Task<Result<void>> Authenticate(RequestContext& context);

// Authenticates a request outside the pipeline. Notes the caller of a key that may not be used.
Task<Result<KeyPtr>> AuthenticateRequest(Worker& worker, HttpRequest& request, CredentialRule rule);

// Whether a key that auth returned may be used at this time (wall clock, µs) from this address.
Result<void> CheckKey(const auth::v1::Key& key, int64_t now_us, std::string_view address);

}  // namespace tollgate::gateway
