// Pieces that the stream and the single body have in common.
#pragma once

#include <string>
#include <string_view>

#include "tollgate/inference/v1/inference.pb.h"

namespace tollgate::gateway {

// "stop", "length", "tool_calls" or "content_filter". A choice that called a tool ends with
// tool_calls however it was made to (decisions.md 31); an unknown end is a stop.
std::string_view ChatFinishReason(inference::v1::FinishReason reason, bool called_tools);

// The reason of a choice that the engine never ended: the money ran out, or nothing was left to
// say.
inference::v1::FinishReason UnsaidFinish(const inference::v1::End& end);

// Whether a choice that ended so has said its tool calls to their end. Then a call without any
// arguments has kNoArguments: clients parse them, and some models leave them out.
bool CallsAreWhole(inference::v1::FinishReason reason);
inline constexpr std::string_view kNoArguments = "{}";

// {"prompt_tokens":…}
void AppendChatUsage(std::string& out, const tollgate::common::v1::Usage& usage);

// An engine's logprobs value with the keys that the public format has, in it and in its tokens, and
// no others. `null` when it is not an object.
std::string PublicLogprobs(const std::string& engine_json);

}  // namespace tollgate::gateway
