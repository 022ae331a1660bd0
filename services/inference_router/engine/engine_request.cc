#include "services/inference_router/engine/engine_request.h"

#include <algorithm>

#include "common/base/crypto.h"
#include "common/base/memo.h"
#include "common/engines/kinds.h"
#include "common/json/json.h"
#include "services/inference_router/engine/reasoning_members.h"
#include "services/inference_router/engine/response_format.h"

namespace tollgate::inference_router {

int ChoicesPerPrompt(const inference::v1::GenerateRequest& request) {
  const int choices = std::max(request.choices(), 1);
  if (request.kind() != inference::v1::REQUEST_KIND_COMPLETION) return choices;
  json::Limits limits;
  limits.allow_lone_surrogates = true;
  limits.allow_nul = true;
  const auto members = json::Document::Parse("{" + request.members_json() + "}", limits);
  if (!members.ok()) return 1;
  return static_cast<int>(
      std::clamp<int64_t>(members->root().Find("n").Integer().value_or(1), 1, choices));
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

std::string CacheSalt(std::string_view key, std::string_view workspace_id,
                      std::string_view own_salt) {
  // The length distinguishes ("a", "bc") from ("ab", "c").
  std::string text = "tollgate cache salt 1\n" + std::to_string(workspace_id.size()) + "\n";
  text += workspace_id;
  text += own_salt;
  const size_t length = text.size();
  text += key;
  thread_local Memo<std::string> salts;
  return salts.Get(text, [&](std::string_view) {
    return HexEncode(HmacSha256(key, std::string_view(text).substr(0, length)));
  });
}

std::string BuildEngineBody(const inference::v1::GenerateRequest& request,
                            catalog::v1::EngineKind kind, std::string_view engine_model,
                            EngineAnswer answer, std::string_view cache_salt, TextFitter* fitter) {
  std::string body;
  body.reserve(request.members_json().size() + engine_model.size() + 256);
  body += R"({"model":)";
  json::AppendQuoted(body, engine_model);
  if (request.kind() == inference::v1::REQUEST_KIND_EMBEDDING) {
    // base64 is exact, and two to four times smaller. Engines that do not support it send numbers.
    body += R"(,"encoding_format":"base64")";
  } else if (answer == EngineAnswer::kStreamed) {
    body += R"(,"stream":true,"stream_options":{"include_usage":true)";
    if (engines::Of(kind).usage_on_chunks) body += R"(,"continuous_usage_stats":true)";
    body += '}';
  }
  if (request.max_tokens() > 0) {
    body += R"(,"max_tokens":)";
    body += std::to_string(request.max_tokens());
  }
  if (request.reasoning_budget_tokens() > 0) {
    if (const std::string_view name = engines::Of(kind).reasoning_budget_member; !name.empty()) {
      body += ",\"";
      body += name;
      body += "\":";
      body += std::to_string(request.reasoning_budget_tokens());
    }
  }
  if (request.has_reasoning()) {
    if (const std::string members = ReasoningMembers(kind, request.reasoning()); !members.empty()) {
      body += ',';
      body += members;
    }
  }
  if (!request.members_json().empty()) {
    TextFitter own;
    body += ',';
    const std::string_view members = (fitter ? *fitter : own).Fit(kind, request.members_json());
    const auto with_format = FitResponseFormat(kind, members);
    body += with_format ? std::string_view(*with_format) : members;
  }
  // Written last: if two members have the same name, engines use the last one.
  if (!cache_salt.empty()) {
    body += R"(,"cache_salt":)";
    json::AppendQuoted(body, cache_salt);
  }
  body += '}';
  return body;
}

}  // namespace tollgate::inference_router
