// HTTP/1.1 client for engines, operators' tools and tests: keep-alive connections per loop and
// origin, answers read as they stream. Everything lives on one loop.
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

class TlsClientContext;

// Where requests go.
struct Origin {
  std::string host;  // name or address, IPv6 without brackets
  uint16_t port = 80;
  bool tls = false;

  friend bool operator==(const Origin&, const Origin&) = default;
};

// An origin and the path that stands before every target ("" or "/prefix", no slash at the end).
struct BaseUrl {
  Origin origin;
  std::string path;
};
// "http://host:port/prefix" or the same with https. Empty on anything else.
std::optional<BaseUrl> ParseBaseUrl(std::string_view url);

struct ClientRequest {
  std::string method = "GET";
  Origin origin;
  std::string target = "/";
  // Besides host, content-length and connection, which the client adds. Values must hold no CR or
  // LF.
  Headers headers;
  std::string body;
  // 0: as in ClientOptions.
  int64_t head_timeout_ms = 0;
  int64_t idle_timeout_ms = 0;
};

struct ClientOptions {
  int64_t connect_timeout_ms = 3'000;  // name resolution and TLS handshake included
  int64_t head_timeout_ms = 600'000;   // from the request's last byte to the answer's head
  int64_t idle_timeout_ms = 600'000;   // silence within an answer, or within a request not taken
  size_t max_head_bytes = 64 * 1024;
  size_t max_idle_per_origin = 256;
  int64_t keep_alive_ms = 30'000;  // idle connections older than this are not used again
  // What is trusted of origins with TLS. Null: they cannot be reached.
  std::shared_ptr<const TlsClientContext> tls;
};

struct ClientError {
  enum class Kind {
    kConnect,   // no connection, or no TLS on it: nothing of the request was sent
    kBroken,    // the connection broke, or the answer ended early
    kTimeout,   // head or idle time-out
    kProtocol,  // not HTTP/1.x as we accept it, or over a limit
    kAborted,   // by our own Abort
  };
  Kind kind = Kind::kBroken;
  std::string message;  // for logs
  // Whether any byte of an answer had arrived.
  bool answer_started = false;
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

// Owns the idle connections of one loop. Must outlive nothing: calls keep what they need.
class Client {
 public:
  explicit Client(Loop& loop, ClientOptions options = {});
  ~Client();  // on the loop, or when it no longer runs
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Sends and reads the whole answer, at most max_body_bytes of it.
  Task<ClientResult<WholeResponse>> Fetch(ClientRequest request, size_t max_body_bytes = 16 << 20);
  size_t idle_connections() const;

 private:
  friend class ClientCall;
  std::shared_ptr<class ClientPool> pool_;
};

// One request and its answer. Send once, then ReadSome until it gives an empty view. A connection
// whose answer was read to its end goes back to the pool; any other is closed when the call is
// destroyed. Must not be destroyed while one of its coroutines is suspended, unless that
// coroutine's owner is destroyed with it.
class ClientCall {
 public:
  explicit ClientCall(Client& client);
  ~ClientCall();
  ClientCall(const ClientCall&) = delete;
  ClientCall& operator=(const ClientCall&) = delete;

  // A request on a kept connection that dies without any answer byte is sent once more, on a fresh
  // connection; nothing else is ever retried here.
  Task<ClientResult<ResponseHead>> Send(ClientRequest request);
  // The next bytes of the body, whatever one read of the socket brought, chunk framing taken out;
  // valid until the next call. Empty at the end.
  Task<ClientResult<std::string_view>> ReadSome();
  // The rest of the body; an error when it is longer than the limit.
  Task<ClientResult<std::string>> ReadAll(size_t max_bytes);
  // Closes at once (a reset, so that the peer notices too); a coroutine that waits in Send or
  // ReadSome resumes with kAborted. Any time, on the loop.
  void Abort();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tollgate::http
