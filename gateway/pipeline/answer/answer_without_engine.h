// The response to `max_tokens: 0`, for which no engine is called (decision 30).
#pragma once

#include "common/runtime/task.h"
#include "gateway/pipeline/request_context.h"

namespace tollgate::gateway {

// Voids the hold and responds with the prompt's token count as usage, or refuses a prompt that does
// not fit.
Task<void> AnswerWithoutEngine(RequestContext& context);

}  // namespace tollgate::gateway
