#include "gateway/handlers/query.h"

#include "common/base/ascii.h"

namespace tollgate::gateway {

namespace {

// Returns nullopt for a malformed escape.
std::optional<std::string> PercentDecode(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out.push_back(text[i]);
      continue;
    }
    if (text.size() - i < 3) return std::nullopt;
    const int high = HexValue(text[i + 1]);
    const int low = HexValue(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    out.push_back(static_cast<char>(high * 16 + low));
    i += 2;
  }
  return out;
}

}  // namespace

Result<void> ReadQuery(std::string_view query, std::span<QueryParameter> parameters) {
  while (!query.empty()) {
    const size_t end = query.find('&');
    const std::string_view pair = query.substr(0, end);
    query = end == std::string_view::npos ? std::string_view() : query.substr(end + 1);
    const size_t equals = pair.find('=');
    const auto name = PercentDecode(pair.substr(0, equals));
    for (QueryParameter& parameter : parameters) {
      if (name != parameter.name) continue;
      if (parameter.value) return BadRequest(*name + " is given more than once.", *name);
      parameter.value =
          PercentDecode(equals == std::string_view::npos ? "" : pair.substr(equals + 1));
      if (!parameter.value) return BadRequest(*name + " is not percent-encoded correctly.", *name);
    }
  }
  return {};
}

}  // namespace tollgate::gateway
