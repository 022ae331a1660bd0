// Maps engine failures to rows of the error catalog. See docs/design/wire.md 10.1, decisions 22,
// 32. An engine's error text is never sent to a client. It is not logged either, since it may quote
// the prompt.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/error/error.h"
#include "common/json/json.h"

namespace tollgate::inference_router {

struct EngineFailure {
  Error error;
  // The engine is at fault, not the request: another engine of the pool may succeed.
  bool try_elsewhere = false;
  // The engine does not know the model (or the path).
  bool not_found = false;
};

// Classifies a response with a status other than 2xx. retry_after is the header's value, possibly
// empty. window is the model's context window in tokens (0: unknown), for an engine that does not
// state its limit.
EngineFailure ClassifyResponse(int status, std::string_view body, std::string_view retry_after,
                               int64_t window);

// Classifies an error object inside a response with status 200.
EngineFailure ClassifyInStream(const json::Value& object, int64_t window);

// Whether the object has one of the error shapes of docs/design/wire.md 10.1.
bool IsErrorObject(const json::Value& object);

// The engine could not be connected to, or closed the connection before the response head.
EngineFailure Unreachable(std::string_view internal);
// The engine violated the protocol or closed the connection after the response head.
EngineFailure BrokenResponse(std::string_view internal);
// The engine sent nothing within the idle timeout.
EngineFailure TimedOut(std::string_view internal);

}  // namespace tollgate::inference_router
