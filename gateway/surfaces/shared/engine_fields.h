// Request members that engines understand and every inference endpoint treats alike. Surfaces
// forward members that they do not know themselves (decisions.md 17), so all of them ask here.
#pragma once

#include <string_view>

#include "gateway/surfaces/shared/fields.h"

namespace tollgate::gateway {

// The rule for a member that the surface's own table does not have; null: forwarded as it came.
const FieldRule* FindEngineField(json::Value member);

// CheckField, and what cannot be said by a rule: the items of `stop` and of `logit_bias`.
Result<void> CheckEngineField(const FieldRule& rule, json::Value value);

// Forwards a checked member. What is legal in the public formats but refused, or taken for
// something else, by some engines goes out in a form with the same meaning that all of them take:
// integers without a fraction, a top_p or top_k of 0, empty stop strings, the wish for plain text.
void ForwardEngineField(const FieldRule& rule, json::Value member, MemberWriter& writer);

// 400 with `field` unless the string is one of the public levels of reasoning effort.
Result<void> CheckReasoningEffort(json::Value effort, std::string_view field);

// Whether a chat template may write this forwarded member into the prompt: its bytes then count as
// text of the prompt.
bool IsPromptField(json::Value member);

}  // namespace tollgate::gateway
