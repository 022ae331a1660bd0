// How much a model reasons, as callers say it in the public formats, in the form that engines take
// (docs/design/wire.md 2.6).
#pragma once

#include <string_view>

#include "gateway/pipeline/canonical_request.h"
#include "gateway/surfaces/shared/fields.h"

namespace tollgate::gateway {

// chat_template_kwargs that turn the reasoning on or off; chat templates use one of two names.
std::string_view ThinkingSwitch(bool on);

// The members `reasoning` and `include_reasoning` of a chat request: adds the members for the
// engine and sets hides_reasoning and reasoning_budget. 400 that names the member at fault, for
// example reasoning.effort, for a wrong value and for two members that contradict each other.
// root: the request, whose reasoning_effort is checked and forwarded elsewhere.
Result<void> ReadReasoningControls(json::Value root, const ModelTraits& traits,
                                   MemberWriter& writer, CanonicalRequest& request);

}  // namespace tollgate::gateway
