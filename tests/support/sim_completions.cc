#include "tests/support/sim_completions.h"

#include <algorithm>

namespace tollgate::test {

std::vector<Json> InputsOf(const Json& value) {
  const bool one = value.is_string() || (value.is_array() && value[0].is_number());
  return one ? std::vector<Json>{value} : value.elements();
}

std::string TextOfPrompt(const Json& prompt) {
  if (prompt.is_string()) return prompt.str();
  std::string text;
  for (const Json& token : prompt.elements()) text += " t" + token.number_text();
  return text;
}

std::string LegacyLogprobs(const std::vector<std::string_view>& tokens, int64_t offset) {
  std::string offsets, probabilities, texts, candidates;
  for (const std::string_view token : tokens) {
    const char* const separator = texts.empty() ? "" : ",";
    offsets += separator + std::to_string(offset);
    probabilities += std::string(separator) + (offset == 0 ? "null" : "-0.25");
    texts += separator + JsonQuoted(token);
    candidates += std::string(separator) +
                  (offset == 0 ? "null" : "{" + JsonQuoted(token) + ":-0.25,\"<other>\":-1.5}");
    offset += CountCharacters(token);
  }
  return "{\"text_offset\":[" + offsets + "],\"token_logprobs\":[" + probabilities +
         "],\"tokens\":[" + texts + "],\"top_logprobs\":[" + candidates + "]}";
}

int64_t CountCharacters(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

}  // namespace tollgate::test
