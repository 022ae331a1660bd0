// Fields that both chunks and single bodies have.
#pragma once

#include <string>
#include <string_view>

#include "tollgate/inference/v1/inference.pb.h"

namespace tollgate::gateway {

// "stop", "length", "tool_calls" or "content_filter". A choice with tool calls ends with
// tool_calls, even when tool_choice forced them (decision 31). An unknown reason becomes "stop".
std::string_view ChatFinishReason(inference::v1::FinishReason reason, bool called_tools);

// The finish reason of a choice that ended without one: length if the credit ended, else stop.
inference::v1::FinishReason DefaultFinishReason(const inference::v1::End& end);

// Whether tool calls are complete with this finish reason. A complete call without arguments gets
// kEmptyArguments: some models omit them, but clients parse them as JSON.
bool ToolCallsAreComplete(inference::v1::FinishReason reason);
inline constexpr std::string_view kEmptyArguments = "{}";

// Returns the delta without its reasoning and without log probabilities, which may belong to the
// reasoning.
inference::v1::Delta WithoutReasoning(const inference::v1::Delta& delta);

// Appends {"prompt_tokens":…}.
// more: further members (answer_cost.h).
void AppendChatUsage(std::string& out, const tollgate::common::v1::Usage& usage,
                     std::string_view more = {});

// Reduces an engine's logprobs value, including its tokens, to the keys of the public format.
// Returns `null` when the value is not an object.
std::string PublicLogprobs(const std::string& engine_json);

}  // namespace tollgate::gateway
