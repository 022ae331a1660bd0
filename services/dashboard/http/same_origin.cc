#include "services/dashboard/http/same_origin.h"

#include "common/base/ascii.h"

namespace tollgate::dashboard {
namespace {

std::string Lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = IsUpper(c) ? static_cast<char>(c | 0x20) : c;
  return out;
}

// Origin of a URL: "https://host:port".
std::string OriginOf(std::string_view url) {
  const size_t host = url.find("://");
  const size_t end = host == std::string_view::npos ? host : url.find('/', host + 3);
  std::string origin = Lower(url.substr(0, end));
  // Browsers omit the default port.
  if (origin.starts_with("https://") && origin.ends_with(":443")) origin.resize(origin.size() - 4);
  if (origin.starts_with("http://") && origin.ends_with(":80")) origin.resize(origin.size() - 3);
  return origin;
}

}  // namespace

bool IsSameOrigin(const http::HttpRequest& request, std::string_view public_url) {
  const std::string_view site = request.header("sec-fetch-site");
  const std::string_view origin = request.header("origin");
  if (!site.empty() && site != "same-origin") return false;
  if (origin.empty()) return !site.empty();
  if (!public_url.empty()) return OriginOf(origin) == OriginOf(public_url);
  const std::string host = Lower(request.header("host"));
  const std::string lower = Lower(origin);
  return !host.empty() && (lower == "http://" + host || lower == "https://" + host);
}

}  // namespace tollgate::dashboard
