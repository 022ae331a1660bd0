#include "services/billing/alerts/receiver_rules.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <netinet/in.h>

#include <cstdint>
#include <cstring>
#include <memory>

#include "common/mail/mail.h"

namespace tollgate::billing::alerts {
namespace {

constexpr size_t kMaxUrl = 2048;

struct Network {
  uint32_t address;
  int bits;
};
// Networks that are not part of the public internet (the IANA registry of special-purpose IPv4
// addresses).
constexpr Network kSpecial[] = {
    {0x00000000, 8},  {0x0A000000, 8},  {0x64400000, 10}, {0x7F000000, 8},  {0xA9FE0000, 16},
    {0xAC100000, 12}, {0xC0000000, 24}, {0xC0000200, 24}, {0xC0586300, 24}, {0xC0A80000, 16},
    {0xC6120000, 15}, {0xC6336400, 24}, {0xCB007100, 24}, {0xE0000000, 4},  {0xF0000000, 4},
};

bool IsPublic4(uint32_t address) {
  for (const Network& network : kSpecial) {
    if ((address ^ network.address) >> (32 - network.bits) == 0) return false;
  }
  return true;
}

bool IsPublic6(const uint8_t* bytes) {
  // Only 2000::/3 is allocated. 2001::/23 (protocols, Teredo), 2001:db8::/32 (documentation) and
  // 2002::/16 (6to4, which contains an IPv4 address) are not ordinary hosts.
  if ((bytes[0] & 0xE0) != 0x20) return false;
  if (bytes[0] == 0x20 && bytes[1] == 0x01 && bytes[2] < 0x02) return false;
  if (bytes[0] == 0x20 && bytes[1] == 0x01 && bytes[2] == 0x0D && bytes[3] == 0xB8) return false;
  if (bytes[0] == 0x20 && bytes[1] == 0x02) return false;
  return !(bytes[0] == 0x3F && bytes[1] == 0xFF);
}

template <typename Judge4, typename Judge6>
bool Judge(const sockaddr& address, Judge4 judge4, Judge6 judge6) {
  if (address.sa_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, &address, sizeof v4);
    return judge4(ntohl(v4.sin_addr.s_addr));
  }
  if (address.sa_family == AF_INET6) {
    sockaddr_in6 v6;
    std::memcpy(&v6, &address, sizeof v6);
    return judge6(v6.sin6_addr.s6_addr);
  }
  return false;
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

// Parses the address of a literal host, "[::1]" included. Returns false for a name.
bool Literal(std::string_view host, sockaddr_storage& out) {
  std::string text(host);
  if (text.size() > 2 && text.front() == '[' && text.back() == ']') {
    text = text.substr(1, text.size() - 2);
    auto& v6 = reinterpret_cast<sockaddr_in6&>(out);
    v6.sin6_family = AF_INET6;
    return inet_pton(AF_INET6, text.c_str(), &v6.sin6_addr) == 1;
  }
  auto& v4 = reinterpret_cast<sockaddr_in&>(out);
  v4.sin_family = AF_INET;
  return inet_pton(AF_INET, text.c_str(), &v4.sin_addr) == 1;
}

}  // namespace

bool IsPublicAddress(const sockaddr& address) { return Judge(address, IsPublic4, IsPublic6); }

bool IsLoopbackAddress(const sockaddr& address) {
  constexpr uint8_t kLoopback6[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  return Judge(
      address, [](uint32_t v4) { return v4 >> 24 == 127; },
      [&](const uint8_t* v6) { return std::memcmp(v6, kLoopback6, 16) == 0; });
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
  sockaddr_storage address{};
  const bool literal = Literal(host, address);
  if (mail::IsLoopbackHost(host) ||
      (literal && !IsPublicAddress(reinterpret_cast<sockaddr&>(address)))) {
    return "the host must be a public address";
  }
  return "";
}

}  // namespace tollgate::billing::alerts
