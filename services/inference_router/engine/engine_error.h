// Maps engine failures to rows of the error catalog. See docs/design/wire.md 10.1, decisions 22,
// 32. An engine's error text is never sent to a client. It is not logged, either, because it may
// quote the prompt.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/error/error.h"
#include "common/json/json.h"

namespace tollgate::inference_router {

// The limit that ended an engine's answer (H75).
enum class AnswerLimit : uint8_t {
  kNone,
  kAnswerBytes,    // text, reasoning, tool calls and log probabilities together
  kToolCalls,      // the number of calls in one choice
  kToolArguments,  // the arguments, the id or the name of one call
  kSilentEvents,   // events or bytes in a row without output
  kFirstOutput,    // time until the first output
  kSilence,        // time between two outputs
  kAnswerTime,     // time of the whole answer
  kMaxTokens,      // the tokens that were asked for; the answer ends by length
};
// Label for the metric, such as "answer_bytes".
std::string_view NameOf(AnswerLimit limit);

struct EngineFailure {
  Error error;
  // The engine is at fault, not the request: another engine of the pool may succeed.
  bool try_elsewhere = false;
  // The engine does not know the model (or the path).
  bool not_found = false;
  // Milliseconds for which the engine asks for no requests (Retry-After of a 429 or 503); 0: not
  // given.
  int64_t pause_ms = 0;
  // The limit that the answer exceeded; kNone if it did not.
  AnswerLimit limit = AnswerLimit::kNone;
};

// Classifies a response with a status other than 2xx. retry_after: the header's value, or empty.
// window: the model's context window in tokens (0: unknown), for an engine that does not state its
// limit.
EngineFailure ClassifyResponse(int status, std::string_view body, std::string_view retry_after,
                               int64_t window);

// Classifies an error object inside a response with status 200.
EngineFailure ClassifyInStream(const json::Value& object, int64_t window);

// Whether the object has one of the error shapes of docs/design/wire.md 10.1.
bool IsErrorObject(const json::Value& object);

// The engine could not be reached, or closed the connection before the response head.
EngineFailure Unreachable(std::string_view internal);
// The engine violated the protocol or closed the connection after the response head.
EngineFailure BrokenResponse(std::string_view internal);
// The engine generated nothing within its time limit.
EngineFailure TimedOut(AnswerLimit limit);
// The answer exceeded a limit on bytes or items.
EngineFailure OverLimit(AnswerLimit limit);

}  // namespace tollgate::inference_router
