// context_length_exceeded: detects it where no engine does, and names the field at fault.
#pragma once

#include <optional>

#include "common/error/error.h"
#include "gateway/pipeline/admission/count_prompt.h"
#include "gateway/pipeline/request_context.h"

namespace tollgate::gateway {

// The error of a counted prompt that does not fit the window, alone or together with max_tokens
// (decision 18). nullopt for an estimate, which proves nothing.
std::optional<Error> FindOverflow(const RequestContext& context, const PromptCount& prompt);

// Sets the param of a context-length error from an engine: the prompt's field when the prompt alone
// does not fit, the field of max_tokens when that is at fault, and none when the numbers do not
// tell.
void SetOverflowParam(const CanonicalRequest& request, Error& error);

}  // namespace tollgate::gateway
