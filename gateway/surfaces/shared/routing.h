// The members with which a caller selects models and providers: `models`, `provider`, `route`,
// `transforms` and `plugins` (docs/design/wire.md 2.7). None of them reaches an engine.
#pragma once

#include <string>

#include "common/error/error.h"
#include "common/json/json.h"
#include "gateway/pipeline/canonical_request.h"

namespace tollgate::gateway {

// Returns the `model` member, or the first of `models` if it is absent. Fails with 400 if both are
// missing or the body is not an object.
Result<std::string> ReadModel(json::Value body);

// Reads the members. request: model and kind must be set. Fails with 400 naming the member, for
// example `models[2]` or `provider.sort`, for anything malformed, unknown or unsupported.
Result<void> ReadRouting(json::Value body, CanonicalRequest& request);

}  // namespace tollgate::gateway
