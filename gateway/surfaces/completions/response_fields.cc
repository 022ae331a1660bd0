#include "gateway/surfaces/completions/response_fields.h"

namespace tollgate::gateway {

namespace pb = inference::v1;

std::string CompletionHead(const CanonicalRequest& request, const ResponseStamp& stamp) {
  return "{\"id\":\"cmpl-" + stamp.id +
         "\",\"object\":\"text_completion\",\"created\":" + std::to_string(stamp.created_s) +
         ",\"model\":" + json::Quoted(request.model) + ",\"choices\":[";
}

std::string_view CompletionFinishReason(pb::FinishReason reason) {
  switch (reason) {
    case pb::FINISH_REASON_LENGTH:
      return "length";
    case pb::FINISH_REASON_CONTENT_FILTER:
      return "content_filter";
    default:
      return "stop";
  }
}

void AppendCompletionUsage(std::string& out, const tollgate::common::v1::Usage& usage,
                           std::string_view more) {
  out += "{\"prompt_tokens\":" + std::to_string(usage.prompt_tokens());
  out += ",\"completion_tokens\":" + std::to_string(usage.completion_tokens());
  out += ",\"total_tokens\":" + std::to_string(usage.prompt_tokens() + usage.completion_tokens());
  out += more;
  out += "}";
}

}  // namespace tollgate::gateway
