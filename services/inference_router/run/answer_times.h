// How long an engine may take for an answer.
#pragma once

#include <cstdint>

#include "services/inference_router/balancer/token_pace.h"
#include "services/inference_router/engine/engine_attempt.h"
#include "services/inference_router/engine/engine_request.h"
#include "services/inference_router/run/run_context.h"

namespace tollgate::inference_router {

// Time limits of an engine. The first output of one that answers as a whole is also its last.
AnswerTimes TimesOf(const RunSettings& settings, EngineAnswer answer);

// The longest time that an engine of this pace needs for a whole answer, in milliseconds (ADR
// 0058). max_tokens: of all choices.
int64_t WholeAnswerMs(const RunSettings& settings, const TokenPace& pace, int64_t prompt_tokens,
                      int64_t max_tokens);

}  // namespace tollgate::inference_router
