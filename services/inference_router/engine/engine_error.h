// Turns what went wrong at an engine into a row of the error catalog. spec: wire.md 10.1, decisions
// 22,
// 32. Engine text never reaches a caller, and, since it may quote the prompt, no log either.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/error/error.h"
#include "common/json/json.h"

namespace tollgate::inference_router {

// A failed answer, or an error object inside a stream.
struct EngineFailure {
  Error error;
  // Another engine of the pool may answer better: the failure is the engine's, not the request's.
  bool try_elsewhere = false;
  // The engine itself is in trouble (not merely busy): it should rest.
  bool engine_down = false;
  // The engine knows no such model (or path).
  bool not_found = false;
};

// The HTTP answer of an engine with a status other than 2xx. retry_after is the header's value, may
// be empty. window is the catalog's context window, named when the engine gives no number; 0 if
// unknown.
EngineFailure ClassifyAnswer(int status, std::string_view body, std::string_view retry_after,
                             int64_t window);

// An object with an error that arrived inside a 200 answer.
EngineFailure ClassifyInStream(const json::Value& object, int64_t window);

// True when the object is one of the error shapes of wire.md 10.1.
bool IsErrorObject(const json::Value& object);

// The engine could not be reached at all, or broke the connection before its answer's head.
EngineFailure Unreachable(std::string_view internal);
// The engine broke the protocol or the connection after its answer had begun.
EngineFailure Broken(std::string_view internal);
// The engine has been silent for too long.
EngineFailure Silent(std::string_view internal);

}  // namespace tollgate::inference_router
