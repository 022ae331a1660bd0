// The members by which a caller says which models and providers may answer: `models`, `provider`,
// `route`, `transforms` and `plugins` (docs/design/wire.md 2.7). None of them reaches an engine.
#pragma once

#include <string>

#include "common/error/error.h"
#include "common/json/json.h"
#include "gateway/pipeline/canonical_request.h"

namespace tollgate::gateway {

// The `model` member, or the first of `models` without one. 400 if both are missing or the body is
// not an object.
Result<std::string> ReadModel(json::Value body);

// Reads the members. request: its model and kind are set. 400 naming the member, for example
// `models[2]` or `provider.sort`, for what is malformed, unknown, or cannot be done.
Result<void> ReadRouting(json::Value body, CanonicalRequest& request);

}  // namespace tollgate::gateway
