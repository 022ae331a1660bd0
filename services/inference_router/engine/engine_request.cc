#include "services/inference_router/engine/engine_request.h"

#include "common/json/json.h"

namespace tollgate::inference_router {

bool ReportsUsageOnEveryChunk(catalog::v1::EngineKind kind) {
  return kind == catalog::v1::ENGINE_KIND_VLLM || kind == catalog::v1::ENGINE_KIND_SGLANG;
}

std::string_view EnginePath(inference::v1::RequestKind kind) {
  switch (kind) {
    case inference::v1::REQUEST_KIND_COMPLETION:
      return "/v1/completions";
    case inference::v1::REQUEST_KIND_EMBEDDING:
      return "/v1/embeddings";
    default:
      return "/v1/chat/completions";
  }
}

std::string BuildEngineBody(const inference::v1::GenerateRequest& request,
                            catalog::v1::EngineKind kind, std::string_view engine_model) {
  std::string body;
  body.reserve(request.members_json().size() + engine_model.size() + 160);
  body += R"({"model":)";
  json::AppendQuoted(body, engine_model);
  if (request.kind() == inference::v1::REQUEST_KIND_EMBEDDING) {
    // Exact, and two to four times smaller. Engines that do not support it send numbers.
    body += R"(,"encoding_format":"base64")";
  } else {
    body += R"(,"stream":true,"stream_options":{"include_usage":true)";
    if (ReportsUsageOnEveryChunk(kind)) body += R"(,"continuous_usage_stats":true)";
    body += '}';
  }
  if (request.max_tokens() > 0) {
    body += R"(,"max_tokens":)";
    body += std::to_string(request.max_tokens());
  }
  if (!request.members_json().empty()) {
    body += ',';
    body += request.members_json();
  }
  body += '}';
  return body;
}

}  // namespace tollgate::inference_router
