// How much a model reasons, as callers say it in the public formats (docs/design/wire.md 2.6).
// Routers write it in the form that the kind of engine takes.
#pragma once

#include "gateway/pipeline/canonical_request.h"
#include "gateway/surfaces/shared/fields.h"

namespace tollgate::gateway {

// Sets reasoning.thinking of the request. root: the request, for its own chat_template_kwargs.
void SetThinking(json::Value root, bool on, CanonicalRequest& request);

// The members `reasoning` and `include_reasoning` of a chat request: sets reasoning,
// hides_reasoning and reasoning_budget. 400 that names the member at fault, for example
// reasoning.effort, for a wrong value and for two members that contradict each other. root: the
// request, whose reasoning_effort is read elsewhere.
Result<void> ReadReasoningControls(json::Value root, const ModelTraits& traits,
                                   CanonicalRequest& request);

}  // namespace tollgate::gateway
