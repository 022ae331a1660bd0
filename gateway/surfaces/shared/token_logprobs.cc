#include "gateway/surfaces/shared/token_logprobs.h"

namespace tollgate::gateway {

namespace {

// token, logprob and bytes, without the closing brace; empty when it is not a token.
std::string Token(json::Value token, UntoldBytes untold) {
  const json::Value text = token.Find("token");
  const json::Value logprob = token.Find("logprob");
  if (!text.is_string() || !logprob.is_number()) return "";
  std::string out = "{\"token\":";
  out += text.raw();
  out += ",\"logprob\":";
  out += logprob.raw();
  out += ",\"bytes\":";
  if (const json::Value bytes = token.Find("bytes"); bytes.is_array()) {
    out += bytes.raw();
    return out;
  }
  if (untold == UntoldBytes::kNull) return out + "null";
  char separator = '[';
  for (const char byte : text.string()) {
    out += separator + std::to_string(static_cast<unsigned char>(byte));
    separator = ',';
  }
  return out + (separator == '[' ? "[]" : "]");
}

}  // namespace

std::string PublicTokens(json::Value tokens, UntoldBytes untold) {
  std::string out;
  for (const json::Value value : tokens) {
    const std::string token = Token(value, untold);
    if (token.empty()) continue;
    if (!out.empty()) out += ",";
    out += token + ",\"top_logprobs\":";
    char separator = '[';
    for (const json::Value other : value.Find("top_logprobs")) {
      const std::string top = Token(other, untold);
      if (top.empty()) continue;
      out += separator + top + "}";
      separator = ',';
    }
    out += separator == '[' ? "[]}" : "]}";
  }
  return out;
}

}  // namespace tollgate::gateway
