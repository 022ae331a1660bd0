// Authentication apart from a whole pipeline run, for endpoints that stop there.
#pragma once

#include "common/error/error.h"
#include "gateway/edge/endpoint.h"
#include "gateway/edge/exchange.h"
#include "gateway/worker/worker.h"

namespace tollgate::gateway {

// The active key that the request carries.
Task<Result<KeyPtr>> AuthenticateRequest(Worker& worker, const HttpRequest& request,
                                         CredentialRule rule);

// Whether a key that auth knows may be used at this time (wall clock, µs).
Result<void> CheckKeyState(const auth::v1::Key& key, int64_t now_us);

}  // namespace tollgate::gateway
