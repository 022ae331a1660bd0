// HTTP/1.1 client for engines, tools and tests: keep-alive connections per loop and origin,
// responses that are read as they stream. All objects live on one loop.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/result.h"
#include "common/http/exchange.h"
#include "common/runtime/loop.h"
#include "common/runtime/task.h"

namespace tollgate::http {

class Resolver;
class TlsClientContext;

// Where requests go.
struct Origin {
  std::string host;  // name or address, IPv6 without brackets
  uint16_t port = 80;
  bool tls = false;
  // Where to connect, in place of the host's addresses; empty: the host is looked up. The host
  // stays what the Host header and the certificate are about.
  std::string address;

  friend bool operator==(const Origin&, const Origin&) = default;
};

// An origin and a prefix of every request target ("" or "/prefix", without a slash at the end).
struct BaseUrl {
  Origin origin;
  std::string path;
};
// Parses "http://host:port/prefix", or the same with https; empty for anything else.
std::optional<BaseUrl> ParseBaseUrl(std::string_view url);

struct ClientRequest {
  std::string method = "GET";
  Origin origin;
  std::string target = "/";
  // Without host, content-length and connection, which the client adds. Values must not contain CR
  // or LF.
  Headers headers;
  std::string body;
  // 0: the value of ClientOptions.
  int64_t head_timeout_ms = 0;
  int64_t idle_timeout_ms = 0;
};

struct ClientOptions {
  // Includes the look-up of the name and the TLS handshake.
  int64_t connect_timeout_ms = 3'000;
  // From the last byte of the request to the head of the response.
  int64_t head_timeout_ms = 600'000;
  // Without progress of the response body, or of sending the request.
  int64_t idle_timeout_ms = 600'000;
  size_t max_head_bytes = 64 * 1024;
  size_t max_idle_per_origin = 256;
  // Connections that were idle for longer are not reused.
  int64_t keep_alive_ms = 30'000;
  // The trusted authorities of origins with TLS. Null: requests to such origins fail.
  std::shared_ptr<const TlsClientContext> tls;
  // Null: the one of the process.
  std::shared_ptr<Resolver> resolver;
};

struct ClientError {
  enum class Kind {
    kConnect,   // connection or TLS handshake failed: nothing of the request was sent
    kBroken,    // the connection was lost, or the response ended early
    kTimeout,   // head or idle timeout
    kProtocol,  // not acceptable as HTTP/1.x, or over a limit
    kAborted,   // by Abort
  };
  Kind kind = Kind::kBroken;
  std::string message;  // for logs
  // Whether any byte of the response had arrived.
  bool response_started = false;
};
template <typename T>
using ClientResult = BasicResult<T, ClientError>;

struct ResponseHead {
  int status = 0;
  Headers headers;  // names in lower case

  std::string_view header(std::string_view lower_name) const {
    for (const auto& [name, value] : headers) {
      if (name == lower_name) return value;
    }
    return {};
  }
};

struct WholeResponse {
  ResponseHead head;
  std::string body;
};

// Owns the idle connections of one loop. Calls may outlive it.
class Client {
 public:
  explicit Client(Loop& loop, ClientOptions options = {});
  ~Client();  // on the loop, or when the loop has stopped
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Sends the request and reads the whole response, whose body may have at most max_body_bytes.
  Task<ClientResult<WholeResponse>> Fetch(ClientRequest request, size_t max_body_bytes = 16 << 20);
  size_t idle_connections() const;

 private:
  friend class ClientCall;
  std::shared_ptr<class ClientPool> pool_;
};

// One request and its response. Send once, then ReadSome until it returns an empty view. If the
// response was read to its end, the connection returns to the pool; otherwise it is closed when the
// call is destroyed. Must not be destroyed while one of its coroutines is suspended, unless that
// coroutine is destroyed as well.
class ClientCall {
 public:
  explicit ClientCall(Client& client);
  ~ClientCall();
  ClientCall(const ClientCall&) = delete;
  ClientCall& operator=(const ClientCall&) = delete;

  // If a reused connection is lost before any byte of the response, the request is sent once more
  // on a new connection. Nothing else is retried here.
  Task<ClientResult<ResponseHead>> Send(ClientRequest request);
  // The whole request has been written, so the server may work on it.
  bool sent() const;
  // The next bytes of the body, as many as one read of the socket returned, without chunk framing.
  // Valid until the next call. Empty at the end of the body.
  Task<ClientResult<std::string_view>> ReadSome();
  // The rest of the body; an error if it is longer than the limit.
  Task<ClientResult<std::string>> ReadAll(size_t max_bytes);
  // Resets the connection; a coroutine that waits in Send or ReadSome resumes with kAborted. At any
  // time, on the loop.
  void Abort();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tollgate::http
