#include "services/billing/alerts/receiver_rules.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <netinet/in.h>

#include <cstring>
#include <memory>
#include <optional>

#include "common/base/public_address.h"
#include "common/mail/mail.h"

namespace tollgate::billing::alerts {
namespace {

constexpr size_t kMaxUrl = 2048;

// nullopt: not IP, or an IPv4 address as IPv6, which no resolver returns for an ordinary host.
std::optional<IpAddress> AddressOf(const sockaddr& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.sa_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, &address, sizeof v4);
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
  } else if (address.sa_family == AF_INET6) {
    sockaddr_in6 v6;
    std::memcpy(&v6, &address, sizeof v6);
    if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) return std::nullopt;
    inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
  }
  return ParseIpAddress(text);
}

struct FreeUrl {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};

std::string Part(CURLU* url, CURLUPart part) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, 0) != CURLUE_OK || text == nullptr) return "";
  std::string copy = text;
  curl_free(text);
  return copy;
}

}  // namespace

bool IsPublicPeer(const sockaddr& address) {
  const auto known = AddressOf(address);
  return known && IsPublicAddress(*known);
}

bool IsLoopbackPeer(const sockaddr& address) {
  static const IpNetwork v4 = *IpNetwork::Parse("127.0.0.0/8");
  static const IpNetwork v6 = *IpNetwork::Parse("::1");
  const auto known = AddressOf(address);
  return known && (v4.Contains(*known) || v6.Contains(*known));
}

std::string CheckWebhookUrl(const std::string& url, bool allow_private) {
  if (url.empty() || url.size() > kMaxUrl) return "the URL must have 1 to 2048 bytes";
  for (const char c : url) {
    if (c <= ' ' || c == 0x7F) return "the URL has a space or a control character";
  }
  const std::unique_ptr<CURLU, FreeUrl> parsed(curl_url());
  // Uses libcurl's parser, which also parses the URL of the call.
  if (!parsed || curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK) {
    return "the URL is not valid";
  }
  const std::string scheme = Part(parsed.get(), CURLUPART_SCHEME);
  const std::string host = Part(parsed.get(), CURLUPART_HOST);
  if (host.empty()) return "the URL has no host";
  if (!Part(parsed.get(), CURLUPART_USER).empty() ||
      !Part(parsed.get(), CURLUPART_PASSWORD).empty()) {
    return "the URL must not have a user or a password";
  }
  if (!Part(parsed.get(), CURLUPART_FRAGMENT).empty()) return "the URL must not have a fragment";
  if (scheme != "https" && !(scheme == "http" && allow_private && mail::IsLoopbackHost(host))) {
    return "the URL must start with https://";
  }
  if (allow_private) return "";
  // A name is resolved later: the address is checked when the socket is opened.
  const bool literal = host.starts_with('[') || ParseIpAddress(host).has_value();
  if (mail::IsLoopbackHost(host) || (literal && !IsPublicHost(host))) {
    return "the host must be a public address";
  }
  return "";
}

}  // namespace tollgate::billing::alerts
