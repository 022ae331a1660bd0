#include "gateway/surfaces/chat_completions/response_fields.h"

#include "common/json/json.h"
#include "gateway/surfaces/shared/token_logprobs.h"

namespace tollgate::gateway {

namespace pb = inference::v1;

std::string_view ChatFinishReason(pb::FinishReason reason, bool called_tools) {
  switch (reason) {
    case pb::FINISH_REASON_LENGTH:
      return "length";
    case pb::FINISH_REASON_CONTENT_FILTER:
      return "content_filter";
    case pb::FINISH_REASON_TOOL_CALLS:
      return "tool_calls";
    default:
      return called_tools ? "tool_calls" : "stop";
  }
}

pb::FinishReason DefaultFinishReason(const pb::End& end) {
  return end.cut_by_credit() ? pb::FINISH_REASON_LENGTH : pb::FINISH_REASON_STOP;
}

bool ToolCallsAreComplete(pb::FinishReason reason) {
  return reason == pb::FINISH_REASON_STOP || reason == pb::FINISH_REASON_TOOL_CALLS;
}

pb::Delta WithoutReasoning(const pb::Delta& delta) {
  pb::Delta shown = delta;
  shown.clear_reasoning_json();
  shown.clear_logprobs_json();
  return shown;
}

void AppendChatUsage(std::string& out, const tollgate::common::v1::Usage& usage,
                     std::string_view more) {
  out += "{\"prompt_tokens\":" + std::to_string(usage.prompt_tokens());
  out += ",\"completion_tokens\":" + std::to_string(usage.completion_tokens());
  out += ",\"total_tokens\":" + std::to_string(usage.prompt_tokens() + usage.completion_tokens());
  out += ",\"prompt_tokens_details\":{\"cached_tokens\":" + std::to_string(usage.cached_tokens());
  if (usage.cache_write_tokens() > 0) {
    out += ",\"cache_write_tokens\":" + std::to_string(usage.cache_write_tokens());
  }
  out += "}";
  // Many engines do not report the count, and 0 would contradict the reasoning that was sent.
  if (usage.reasoning_tokens() > 0) {
    out += ",\"completion_tokens_details\":{\"reasoning_tokens\":" +
           std::to_string(usage.reasoning_tokens()) + "}";
  }
  out += more;
  out += "}";
}

std::string PublicLogprobs(const std::string& engine_json) {
  json::Limits limits;
  limits.allow_lone_surrogates = true;
  limits.allow_nul = true;
  const auto document = json::Document::ParseView(engine_json, limits);
  if (!document || !document->root().is_object()) return "null";
  const auto list = [&](std::string_view name) {
    const json::Value tokens = document->root().Find(name);
    if (!tokens.is_array()) return std::string("null");
    return "[" + PublicTokenLogprobs(tokens, MissingBytes::kNull) + "]";
  };
  return "{\"content\":" + list("content") + ",\"refusal\":" + list("refusal") + "}";
}

}  // namespace tollgate::gateway
