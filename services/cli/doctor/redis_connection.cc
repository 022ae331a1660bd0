#include "services/cli/doctor/redis_connection.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "services/cli/doctor/probe.h"

namespace tollgate::cli {
namespace {

std::string LastTlsError() {
  const unsigned long code = ERR_get_error();
  const char* text = code == 0 ? nullptr : ERR_reason_error_string(code);
  ERR_clear_error();
  return text == nullptr ? "the connection was closed" : text;
}

}  // namespace

std::string RedisConnection::Connect(const redis::Endpoint& endpoint, const RedisLogin& login,
                                     int timeout_ms) {
  // Checks the address first: BIO_do_connect has no timeout and no clear error.
  const std::string unreached = TryToConnect(endpoint.ToString(), timeout_ms);
  if (!unreached.empty()) return "cannot be reached: " + unreached;
  BIO* plain = BIO_new_connect(endpoint.ToString().c_str());
  bio_.reset(plain);
  if (login.tls) {
    context_.reset(SSL_CTX_new(TLS_client_method()));
    SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
    const bool trusted = login.authority_file.empty()
                             ? SSL_CTX_set_default_verify_paths(context_.get()) == 1
                             : SSL_CTX_load_verify_locations(
                                   context_.get(), login.authority_file.c_str(), nullptr) == 1;
    if (!trusted) return "the authorities of its certificate cannot be read";
    BIO* secure = BIO_new_ssl(context_.get(), /*client=*/1);
    SSL* ssl = nullptr;
    BIO_get_ssl(secure, &ssl);
    SSL_set_tlsext_host_name(ssl, endpoint.host.c_str());
    SSL_set1_host(ssl, endpoint.host.c_str());
    static_cast<void>(bio_.release());
    bio_.reset(BIO_push(secure, plain));
  }
  if (BIO_do_connect(plain) <= 0) return "cannot be reached: " + LastTlsError();
  int socket = -1;
  BIO_get_fd(plain, &socket);
  const timeval wait{.tv_sec = timeout_ms / 1000, .tv_usec = timeout_ms % 1000 * 1000};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
  ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
  if (login.tls && BIO_do_handshake(bio_.get()) <= 0) return "TLS fails: " + LastTlsError();
  return "";
}

BasicResult<std::unique_ptr<RedisConnection>, std::string> RedisConnection::Open(
    const redis::Endpoint& endpoint, const RedisLogin& login, int timeout_ms) {
  auto connection = std::make_unique<RedisConnection>();
  connection->reader_.reset(redisReaderCreate());
  const std::string error = connection->Connect(endpoint, login, timeout_ms);
  if (!error.empty()) return Fail{error};
  if (login.password.empty()) return connection;
  std::vector<std::string> words = {"AUTH"};
  if (!login.user.empty()) words.push_back(login.user);
  words.push_back(login.password);
  if (const auto entered = connection->Call(words); !entered.ok()) {
    return Fail{"refuses the password: " + entered.error()};
  }
  return connection;
}

BasicResult<RedisConnection::Reply, std::string> RedisConnection::Call(
    const std::vector<std::string>& words) {
  std::string text = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words) {
    text += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  }
  if (BIO_write(bio_.get(), text.data(), static_cast<int>(text.size())) <= 0) {
    return Fail{std::string("cannot send a command: ") + LastTlsError()};
  }
  while (true) {
    void* found = nullptr;
    if (redisReaderGetReply(reader_.get(), &found) != REDIS_OK) {
      return Fail{std::string("does not answer as Redis does")};
    }
    if (found != nullptr) {
      Reply reply(static_cast<redisReply*>(found));
      if (reply->type == REDIS_REPLY_ERROR) return Fail{std::string(reply->str, reply->len)};
      return reply;
    }
    char bytes[4096];
    const int count = BIO_read(bio_.get(), bytes, sizeof bytes);
    if (count <= 0) return Fail{std::string("does not answer")};
    redisReaderFeed(reader_.get(), bytes, static_cast<size_t>(count));
  }
}

}  // namespace tollgate::cli
