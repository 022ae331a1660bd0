// The reasoning settings of the public formats (docs/design/wire.md 2.6). Routers translate them
// for each kind of engine.
#pragma once

#include "gateway/pipeline/canonical_request.h"
#include "gateway/surfaces/shared/fields.h"

namespace tollgate::gateway {

// Sets the request's reasoning.thinking. root: the request, read for its own chat_template_kwargs.
void SetThinking(json::Value root, bool on, CanonicalRequest& request);

// Reads the members `reasoning` and `include_reasoning` of a chat request. Sets reasoning,
// hides_reasoning and reasoning_budget. Fails with 400 naming the member at fault, for example
// reasoning.effort, for a wrong value and for two members that contradict each other. root: the
// request; its reasoning_effort is read elsewhere.
Result<void> ReadReasoningControls(json::Value root, const ModelTraits& traits,
                                   CanonicalRequest& request);

}  // namespace tollgate::gateway
