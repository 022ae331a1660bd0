// What reading a request body has in common on all inference endpoints.
#pragma once

#include <functional>
#include <span>

#include "gateway/pipeline/canonical_request.h"
#include "gateway/surfaces/shared/fields.h"

namespace tollgate::gateway {

// The model that the body names. 400 when it names none, or is no object.
Result<std::string> ReadModel(json::Value body);

// Checks every member by the surface's rules, or by those of all endpoints (engine_fields.h), and
// forwards it unless the surface owns it. Nulls are absent (decisions.md 17), and a member that no
// rule knows goes on as it came. What chat templates see of it is added to the prompt.
// on_known: called, after the check, for each member with a rule that is not dropped; may be empty.
Result<void> ReadMembers(
    json::Value body, std::span<const FieldRule> rules, MemberWriter& writer, PromptSize& prompt,
    const std::function<Result<void>(const FieldRule& rule, json::Value member)>& on_known = {});

// `stream_options.include_usage`; false when nothing is streamed.
Result<bool> WantsUsageChunk(json::Value body);

}  // namespace tollgate::gateway
