// HTTP/1.1 client for engines, tools and tests: keep-alive connections per loop and origin,
// streamed responses. All objects live on one loop.
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

namespace tollgate {
class HostResolver;
}

namespace tollgate::http {

class TlsClientContext;

// The target of requests.
struct Origin {
  std::string host;  // name or address, IPv6 without brackets
  uint16_t port = 80;
  bool tls = false;
  // Connects to this address; empty: the host is looked up. The Host header and the certificate
  // check still use the host.
  std::string address;

  friend bool operator==(const Origin&, const Origin&) = default;
};

// An origin and a prefix for every request target ("" or "/prefix", without a trailing slash).
struct BaseUrl {
  Origin origin;
  std::string path;
};
// Parses "http://host:port/prefix" or its https form; nullopt for anything else.
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
  // Includes the name look-up and the TLS handshake.
  int64_t connect_timeout_ms = 3'000;
  // Time from the last byte of the request to the head of the response.
  int64_t head_timeout_ms = 600'000;
  // Time without progress in reading the response body or sending the request.
  int64_t idle_timeout_ms = 600'000;
  size_t max_head_bytes = 64 * 1024;
  size_t max_idle_per_origin = 256;
  // Connections that have been idle longer are not reused.
  int64_t keep_alive_ms = 30'000;
  // The trusted authorities of origins with TLS. Null: requests to such origins fail.
  std::shared_ptr<const TlsClientContext> tls;
  // Null: the resolver of the process.
  std::shared_ptr<HostResolver> resolver;
};

struct ClientError {
  enum class Kind {
    kConnect,   // connection or TLS handshake failed; no part of the request was sent
    kBroken,    // the connection was lost, or the response ended early
    kTimeout,   // head or idle timeout
    kProtocol,  // invalid HTTP/1.x, or over a limit
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

  // Sends the request and reads the whole response. Fails if its body exceeds max_body_bytes.
  Task<ClientResult<WholeResponse>> Fetch(ClientRequest request, size_t max_body_bytes = 16 << 20);
  size_t idle_connections() const;

 private:
  friend class ClientCall;
  std::shared_ptr<class ClientPool> pool_;
};

// One request and its response. Call Send once, then ReadSome until it returns an empty view. A
// response that was read to its end returns the connection to the pool; otherwise the destructor
// closes the connection. Must not be destroyed while one of its coroutines is suspended, unless
// that coroutine is destroyed as well.
class ClientCall {
 public:
  explicit ClientCall(Client& client);
  ~ClientCall();
  ClientCall(const ClientCall&) = delete;
  ClientCall& operator=(const ClientCall&) = delete;

  // If a reused connection is lost before any byte of the response, the request is sent once more
  // on a new connection. There are no other retries.
  Task<ClientResult<ResponseHead>> Send(ClientRequest request);
  // Whether the whole request has been written, so that the server may be working on it.
  bool sent() const;
  // Returns the bytes of the body from one read of the socket, without chunk framing; empty at the
  // end of the body. Valid until the next call.
  Task<ClientResult<std::string_view>> ReadSome();
  // Returns the rest of the body, or an error if it exceeds the limit.
  Task<ClientResult<std::string>> ReadAll(size_t max_bytes);
  // Resets the connection. A coroutine that waits in Send or ReadSome resumes with kAborted.
  // Callable at any time on the loop.
  void Abort();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tollgate::http
