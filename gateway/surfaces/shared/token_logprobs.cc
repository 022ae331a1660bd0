#include "gateway/surfaces/shared/token_logprobs.h"

namespace tollgate::gateway {

namespace {

// {"token","logprob","bytes" without the closing brace; empty if the value is not a token.
std::string Token(json::Value token, MissingBytes missing_bytes) {
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
  if (missing_bytes == MissingBytes::kNull) return out + "null";
  char separator = '[';
  for (const char byte : text.string()) {
    out += separator + std::to_string(static_cast<unsigned char>(byte));
    separator = ',';
  }
  return out + (separator == '[' ? "[]" : "]");
}

}  // namespace

std::string PublicTokenLogprobs(json::Value tokens, MissingBytes missing_bytes) {
  std::string out;
  for (const json::Value value : tokens) {
    const std::string token = Token(value, missing_bytes);
    if (token.empty()) continue;
    if (!out.empty()) out += ",";
    out += token + ",\"top_logprobs\":";
    char separator = '[';
    for (const json::Value other : value.Find("top_logprobs")) {
      const std::string top = Token(other, missing_bytes);
      if (top.empty()) continue;
      out += separator + top + "}";
      separator = ',';
    }
    out += separator == '[' ? "[]}" : "]}";
  }
  return out;
}

}  // namespace tollgate::gateway
