#include "services/ratelimit/redis/redis_stream.h"

#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>

namespace tollgate::ratelimit {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

class PlainStream final : public RedisStream {
 public:
  explicit PlainStream(asio::io_context& context) : resolver_(context), socket_(context) {}

  void Connect(const Endpoint& endpoint, Done done) override {
    resolver_.async_resolve(endpoint.host, endpoint.port,
                            [this, done = std::move(done)](const error_code& failed,
                                                           tcp::resolver::results_type found) {
                              if (failed) return done(failed, 0);
                              asio::async_connect(
                                  socket_, found,
                                  [this, done](const error_code& failed, const tcp::endpoint&) {
                                    error_code ignored;
                                    if (!failed) socket_.set_option(tcp::no_delay(true), ignored);
                                    done(failed, 0);
                                  });
                            });
  }
  void Read(char* data, size_t size, Done done) override {
    socket_.async_read_some(asio::buffer(data, size), std::move(done));
  }
  void Write(const std::string& text, Done done) override {
    asio::async_write(socket_, asio::buffer(text), std::move(done));
  }
  void Close() override {
    error_code ignored;
    resolver_.cancel();
    socket_.close(ignored);
  }

 private:
  tcp::resolver resolver_;
  tcp::socket socket_;
};

class TlsStream final : public RedisStream {
 public:
  TlsStream(asio::io_context& context, asio::ssl::context& tls)
      : resolver_(context), stream_(context, tls) {}

  void Connect(const Endpoint& endpoint, Done done) override {
    stream_.set_verify_callback(asio::ssl::host_name_verification(endpoint.host));
    SSL_set_tlsext_host_name(stream_.native_handle(), endpoint.host.c_str());
    resolver_.async_resolve(endpoint.host, endpoint.port,
                            [this, done = std::move(done)](const error_code& failed,
                                                           tcp::resolver::results_type found) {
                              if (failed) return done(failed, 0);
                              asio::async_connect(
                                  stream_.lowest_layer(), found,
                                  [this, done](const error_code& failed, const tcp::endpoint&) {
                                    if (failed) return done(failed, 0);
                                    error_code ignored;
                                    stream_.lowest_layer().set_option(tcp::no_delay(true), ignored);
                                    stream_.async_handshake(
                                        asio::ssl::stream_base::client,
                                        [done](const error_code& failed) { done(failed, 0); });
                                  });
                            });
  }
  void Read(char* data, size_t size, Done done) override {
    stream_.async_read_some(asio::buffer(data, size), std::move(done));
  }
  void Write(const std::string& text, Done done) override {
    asio::async_write(stream_, asio::buffer(text), std::move(done));
  }
  void Close() override {
    error_code ignored;
    resolver_.cancel();
    stream_.lowest_layer().close(ignored);
  }

 private:
  tcp::resolver resolver_;
  asio::ssl::stream<tcp::socket> stream_;
};

}  // namespace

std::unique_ptr<RedisStream> MakeRedisStream(asio::io_context& context, asio::ssl::context* tls) {
  if (tls == nullptr) return std::make_unique<PlainStream>(context);
  return std::make_unique<TlsStream>(context, *tls);
}

}  // namespace tollgate::ratelimit
