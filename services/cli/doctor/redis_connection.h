// A blocking connection to Redis, plain or over TLS, for a few commands.
#pragma once

#include <hiredis/hiredis.h>
#include <openssl/bio.h>
#include <openssl/ssl.h>

#include <memory>
#include <string>
#include <vector>

#include "common/base/redis_url.h"
#include "common/base/result.h"

namespace tollgate::cli {

struct RedisLogin {
  std::string user;
  std::string password;        // empty: no authentication
  std::string authority_file;  // for TLS; empty: the system's
  bool tls = false;
};

class RedisConnection {
 public:
  struct FreeReply {
    void operator()(redisReply* reply) const { freeReplyObject(reply); }
  };
  using Reply = std::unique_ptr<redisReply, FreeReply>;

  // Connects and logs in. The error says which of the two failed, and does not contain the
  // password.
  static BasicResult<std::unique_ptr<RedisConnection>, std::string> Open(
      const redis::Endpoint& endpoint, const RedisLogin& login, int timeout_ms);

  // Sends a command. An error reply of Redis is returned as an error.
  BasicResult<Reply, std::string> Call(const std::vector<std::string>& words);

 private:
  struct FreeContext {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  };
  struct FreeBio {
    void operator()(BIO* bio) const { BIO_free_all(bio); }
  };
  struct FreeReader {
    void operator()(redisReader* reader) const { redisReaderFree(reader); }
  };
  std::string Connect(const redis::Endpoint& endpoint, const RedisLogin& login, int timeout_ms);

  std::unique_ptr<SSL_CTX, FreeContext> context_;
  std::unique_ptr<BIO, FreeBio> bio_;
  std::unique_ptr<redisReader, FreeReader> reader_;
};

}  // namespace tollgate::cli
