#include "services/catalog/domain/engine_url.h"

#include <algorithm>
#include <charconv>

#include "common/base/ascii.h"

namespace tollgate::catalog {
namespace {

bool IsHostName(std::string_view host) {
  return !host.empty() && host.size() <= 253 && host.front() != '-' && host.front() != '.' &&
         std::all_of(host.begin(), host.end(),
                     [](char c) { return IsAlnum(c) || c == '.' || c == '-' || c == '_'; });
}

bool IsIpv6Literal(std::string_view host) {
  return host.size() >= 4 && host.front() == '[' && host.back() == ']' &&
         std::all_of(host.begin() + 1, host.end() - 1,
                     [](char c) { return HexValue(c) >= 0 || c == ':' || c == '.'; });
}

bool IsPort(std::string_view text) {
  int port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() && port >= 1 && port <= 65'535;
}

}  // namespace

std::string EngineUrlProblem(std::string_view url) {
  if (url.empty()) return "is missing";
  std::string_view rest = url;
  if (rest.starts_with("http://")) {
    rest.remove_prefix(7);
  } else if (rest.starts_with("https://")) {
    rest.remove_prefix(8);
  } else {
    return "must start with http:// or https://";
  }
  if (const size_t slash = rest.find_first_of("/?#"); slash != std::string_view::npos) {
    if (rest.substr(slash).starts_with("/v1")) {
      return "must end after the port, without /v1: the router adds the paths";
    }
    return "must end after the port, for example http://127.0.0.1:8000";
  }
  if (rest.find('@') != std::string_view::npos) {
    return "must not hold a user name or password: use api_key";
  }
  const size_t colon = rest.rfind(':');
  const bool has_port = colon != std::string_view::npos && !rest.substr(colon).ends_with(']');
  if (has_port ? !IsPort(rest.substr(colon + 1)) : url.starts_with("http://")) {
    return "must name a port between 1 and 65535, for example http://127.0.0.1:8000";
  }
  const std::string_view host = has_port ? rest.substr(0, colon) : rest;
  if (!IsHostName(host) && !IsIpv6Literal(host)) return "has no valid host name";
  return "";
}

}  // namespace tollgate::catalog
