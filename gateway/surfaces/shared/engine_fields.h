// Rules for engine request members that all inference endpoints share. Surfaces forward members
// that are not in their own table (decision 17), subject to these rules.
#pragma once

#include <cstddef>
#include <string_view>

#include "gateway/pipeline/canonical_request.h"
#include "gateway/surfaces/shared/fields.h"

namespace tollgate::gateway {

// Most stop strings of a request.
inline constexpr size_t kMaxStops = 64;

// The rule for a member that is missing from the surface's table; null: forwarded unchanged.
const FieldRule* FindEngineField(json::Value member);

// Runs CheckField and the checks that a rule cannot express: the items of `stop` and `logit_bias`,
// and `usage.include`.
Result<void> CheckEngineField(const FieldRule& rule, json::Value value);

// Records what the pipeline needs of a checked member: template_member, cache_salt and
// include_cost.
void ReadEngineField(const FieldRule& rule, json::Value member, CanonicalRequest& request);

// Checks chat_template_kwargs. Some engines pass its members on as arguments of the function that
// applies the template. Fails with 400 for members that are arguments of that function. Ignores
// other members.
Result<void> CheckTemplateArguments(json::Value member, CanonicalRequest& request);

// Forwards a checked member. Values that are valid in the public formats but that some engines
// refuse or misinterpret are rewritten to an equivalent that all engines accept: integers written
// as floats, a top_p or top_k of 0, empty stop strings, a response_format of type text.
void ForwardEngineField(const FieldRule& rule, json::Value member, MemberWriter& writer);

// Fails with 400 and `field` unless the string is one of the public levels of reasoning effort.
Result<void> CheckReasoningEffort(json::Value effort, std::string_view field);

// Whether a chat template may write this forwarded member into the prompt. Its bytes then count as
// prompt text.
bool IsPromptField(json::Value member);

}  // namespace tollgate::gateway
