#include "gateway/surfaces/responses/logprobs.h"

#include "common/json/json.h"

namespace tollgate::gateway {

namespace {

// token, logprob and bytes, without the closing brace; empty when it is not a token.
std::string Token(json::Value token) {
  const json::Value text = token.Find("token");
  const json::Value logprob = token.Find("logprob");
  if (!text.is_string() || !logprob.is_number()) return "";
  std::string out = "{\"token\":";
  out += text.raw();
  out += ",\"logprob\":";
  out += logprob.raw();
  out += ",\"bytes\":";
  // Not every engine tells the bytes, and nowhere else may they be missing.
  if (const json::Value bytes = token.Find("bytes"); bytes.is_array()) {
    out += bytes.raw();
    return out;
  }
  char separator = '[';
  for (const char byte : text.string()) {
    out += separator + std::to_string(static_cast<unsigned char>(byte));
    separator = ',';
  }
  return out + (separator == '[' ? "[]" : "]");
}

}  // namespace

std::string ResponseLogprobs(std::string_view engine_json) {
  json::Limits limits;
  limits.allow_lone_surrogates = true;
  limits.allow_nul = true;
  const auto document = json::Document::ParseView(engine_json, limits);
  std::string out;
  if (!document) return out;
  for (const json::Value value : document->root().Find("content")) {
    const std::string token = Token(value);
    if (token.empty()) continue;
    if (!out.empty()) out += ",";
    out += token + ",\"top_logprobs\":";
    char separator = '[';
    for (const json::Value other : value.Find("top_logprobs")) {
      const std::string top = Token(other);
      if (top.empty()) continue;
      out += separator + top + "}";
      separator = ',';
    }
    out += separator == '[' ? "[]}" : "]}";
  }
  return out;
}

}  // namespace tollgate::gateway
