// Byte stream of a connection to Redis, over TCP or TLS.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "common/base/redis_url.h"

namespace tollgate::ratelimit {

using redis::Endpoint;
using redis::ParseEndpoint;
using redis::ParseRedisUrl;
using redis::RedisUrl;
using redis::SlotOf;

class RedisStream {
 public:
  using Done = std::function<void(const boost::system::error_code&, size_t bytes)>;
  virtual ~RedisStream() = default;
  // Resolves the name, connects and does the TLS handshake.
  virtual void Connect(const Endpoint& endpoint, Done done) = 0;
  virtual void Read(char* data, size_t size, Done done) = 0;
  // Writes all of it. The text must stay valid until done.
  virtual void Write(const std::string& text, Done done) = 0;
  virtual void Close() = 0;
};

// tls: null for plain text; must outlive the stream.
std::unique_ptr<RedisStream> MakeRedisStream(boost::asio::io_context& context,
                                             boost::asio::ssl::context* tls);

}  // namespace tollgate::ratelimit
