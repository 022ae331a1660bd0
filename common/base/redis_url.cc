#include "common/base/redis_url.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace tollgate::redis {
namespace {

constexpr int kSlots = 16384;
constexpr int kMaxDatabase = 65535;

bool IsPort(std::string_view text) {
  int port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() && port > 0 && port < 65536;
}

std::string Wrong(std::string_view what) {
  return "ratelimit.redis_url: " + std::string(what) +
         "; write redis://host:port/database, redis-sentinel://host:port,host:port/NAME or "
         "redis-cluster://host:port,host:port (rediss… for TLS)";
}

}  // namespace

std::string Endpoint::ToString() const {
  return host.find(':') == std::string::npos ? host + ":" + port : "[" + host + "]:" + port;
}

BasicResult<Endpoint, std::string> ParseEndpoint(std::string_view text,
                                                 std::string_view default_port) {
  Endpoint endpoint{.host = std::string(text), .port = std::string(default_port)};
  const size_t colon = text.rfind(':');
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    if (end == std::string_view::npos) return Fail{std::string("an address lacks its ]")};
    endpoint.host = text.substr(1, end - 1);
    if (end + 1 < text.size()) {
      if (text[end + 1] != ':') return Fail{std::string("after ] comes :port")};
      endpoint.port = text.substr(end + 2);
    }
  } else if (colon != std::string_view::npos) {
    endpoint.host = text.substr(0, colon);
    endpoint.port = text.substr(colon + 1);
  }
  if (endpoint.host.empty()) return Fail{std::string("a host is missing")};
  if (!IsPort(endpoint.port)) return Fail{std::string("what follows the last : is not a port")};
  return endpoint;
}

BasicResult<RedisUrl, std::string> ParseRedisUrl(std::string_view text) {
  RedisUrl url;
  const size_t end = text.find("://");
  if (end == std::string_view::npos) return Fail{Wrong("it has no scheme")};
  std::string_view scheme = text.substr(0, end);
  std::string_view rest = text.substr(end + 3);
  url.tls = scheme.starts_with("rediss");
  scheme.remove_prefix(std::min<size_t>(scheme.size(), url.tls ? 6 : 5));
  if (!text.starts_with("redis") ||
      (!scheme.empty() && scheme != "-sentinel" && scheme != "-cluster")) {
    return Fail{Wrong("the scheme is unknown")};
  }
  if (scheme == "-sentinel") url.kind = RedisUrl::Kind::kSentinel;
  if (scheme == "-cluster") url.kind = RedisUrl::Kind::kCluster;
  if (rest.find('@') != std::string_view::npos) {
    return Fail{
        std::string("ratelimit.redis_url must not hold credentials: use redis_user and "
                    "redis_password_file")};
  }
  std::string_view path;
  if (const size_t slash = rest.find('/'); slash != std::string_view::npos) {
    path = rest.substr(slash + 1);
    rest = rest.substr(0, slash);
  }
  const bool sentinel = url.kind == RedisUrl::Kind::kSentinel;
  while (true) {
    const size_t comma = std::min(rest.find(','), rest.size());
    auto endpoint = ParseEndpoint(rest.substr(0, comma), sentinel ? "26379" : "6379");
    if (!endpoint) return Fail{Wrong(endpoint.error())};
    url.endpoints.push_back(std::move(*endpoint));
    if (comma == rest.size()) break;
    rest.remove_prefix(comma + 1);
  }
  if (sentinel) {
    if (path.empty())
      return Fail{Wrong("the name of the master that the sentinels watch is missing")};
    url.master_name = path;
  } else if (url.kind == RedisUrl::Kind::kCluster) {
    if (!path.empty()) return Fail{Wrong("a cluster has no databases")};
  } else {
    if (url.endpoints.size() > 1) return Fail{Wrong("redis:// names one server")};
    const auto [stop, error] =
        std::from_chars(path.data(), path.data() + path.size(), url.database);
    const bool number = error == std::errc() && stop == path.data() + path.size();
    if (!path.empty() && (!number || url.database < 0 || url.database > kMaxDatabase)) {
      return Fail{Wrong("the database is not a number")};
    }
  }
  return url;
}

int SlotOf(std::string_view tag) {
  // CRC-16/XMODEM, which Redis Cluster specifies.
  uint16_t crc = 0;
  for (const char c : tag) {
    crc = static_cast<uint16_t>(crc ^ (static_cast<uint16_t>(static_cast<unsigned char>(c)) << 8));
    for (int bit = 0; bit < 8; ++bit) {
      crc = static_cast<uint16_t>((crc & 0x8000) != 0 ? (crc << 1) ^ 0x1021 : crc << 1);
    }
  }
  return crc % kSlots;
}

}  // namespace tollgate::redis
