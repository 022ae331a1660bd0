#include "services/inference_router/engine/surrogate_joiner.h"

namespace tollgate::inference_router {
namespace {

// Whether the escaped text ends in an escaped high surrogate.
bool EndsInHighSurrogate(std::string_view escaped) {
  if (escaped.size() < 6) return false;
  const char* tail = escaped.data() + escaped.size() - 6;
  if (tail[0] != '\\' || tail[1] != 'u' || (tail[2] | 0x20) != 'd') return false;
  const char digit = tail[3] | 0x20;  // high surrogates are D800 to DBFF
  if (digit != '8' && digit != '9' && digit != 'a' && digit != 'b') return false;
  size_t backslashes = 1;
  while (backslashes < escaped.size() - 5 && escaped[escaped.size() - 6 - backslashes] == '\\') {
    ++backslashes;
  }
  return backslashes % 2 == 1;
}

}  // namespace

std::string SurrogateJoiner::Join(std::string_view piece) {
  std::string text = std::move(high_surrogate_);
  high_surrogate_.clear();
  text += piece;
  if (EndsInHighSurrogate(text)) {
    high_surrogate_ = text.substr(text.size() - 6);
    text.resize(text.size() - 6);
  }
  return text;
}

}  // namespace tollgate::inference_router
