#include "gateway/pipeline/checks/content_type.h"

#include <algorithm>
#include <string>

namespace tollgate::gateway {

namespace {

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return c >= 'A' && c <= 'Z' ? c | 0x20 : c; });
  return lower;
}

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

bool IsJson(std::string_view media_type) {
  return media_type == "application/json" || media_type == "text/json" ||
         (media_type.starts_with("application/") && media_type.ends_with("+json"));
}

}  // namespace

Result<void> CheckContentType(const HttpRequest& request) {
  const std::string header = Lower(request.header("content-type"));
  std::string_view rest = Trim(header);
  if (rest.empty()) return {};
  const size_t semicolon = rest.find(';');
  if (!IsJson(Trim(rest.substr(0, semicolon)))) {
    return BadRequest("Content-Type must be application/json.");
  }
  const size_t charset = rest.find("charset=");
  if (charset != std::string_view::npos) {
    std::string_view value = rest.substr(charset + 8);
    value = Trim(value.substr(0, value.find(';')));
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"') {
      value = value.substr(1, value.size() - 2);
    }
    if (value != "utf-8" && value != "utf8" && value != "us-ascii") {
      return BadRequest("The charset of the body must be utf-8.");
    }
  }
  return {};
}

}  // namespace tollgate::gateway
