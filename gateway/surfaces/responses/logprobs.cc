#include "gateway/surfaces/responses/logprobs.h"

#include "common/json/json.h"
#include "gateway/surfaces/shared/token_logprobs.h"

namespace tollgate::gateway {

std::string ResponseLogprobs(std::string_view engine_json) {
  json::Limits limits;
  limits.allow_lone_surrogates = true;
  limits.allow_nul = true;
  const auto document = json::Document::ParseView(engine_json, limits);
  if (!document) return "";
  return PublicTokenLogprobs(document->root().Find("content"), MissingBytes::kFromText);
}

}  // namespace tollgate::gateway
