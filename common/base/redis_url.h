// Addresses of Redis (RateLimitSettings.redis_url). Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"

namespace tollgate::redis {

struct Endpoint {
  std::string host;
  std::string port;
  std::string ToString() const;  // host:port, [host]:port
  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

struct RedisUrl {
  enum class Kind { kSingle, kSentinel, kCluster };
  Kind kind = Kind::kSingle;
  bool tls = false;
  // The server; or the sentinels, or some nodes of the cluster, which know the masters.
  std::vector<Endpoint> endpoints;
  std::string master_name;  // for sentinels
  int database = 0;         // for a single server
};

// redis://host[:port][/database], redis-sentinel://host[:port],…/NAME and
// redis-cluster://host[:port],…; rediss instead of redis for TLS. The error is a message for the
// operator.
BasicResult<RedisUrl, std::string> ParseRedisUrl(std::string_view url);

// "host:port" or "[v6]:port"; the port may be missing.
BasicResult<Endpoint, std::string> ParseEndpoint(std::string_view text,
                                                 std::string_view default_port);

// The Redis Cluster hash slot of keys with this hash tag (the part in braces).
int SlotOf(std::string_view tag);

}  // namespace tollgate::redis
