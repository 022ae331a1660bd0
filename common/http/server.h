// HTTP/1.1 server: strict framing, limits, keep-alive and pipelining, streamed responses with
// back-pressure, detection of disconnected clients. Independent of endpoints and error envelopes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/memory_budget.h"
#include "common/error/error.h"
#include "common/http/exchange.h"
#include "common/http/head_verdict.h"
#include "common/http/trusted_proxies.h"
#include "common/runtime/loop.h"

namespace tollgate::http {

class TlsServerContext;
struct ServerMetrics;

// The outcome of a request, for logs and metrics.
struct RequestSummary {
  int status = 0;              // 0: nothing was sent
  int64_t duration_us = 0;     // since the last byte of the request
  int64_t first_byte_us = -1;  // until the first byte of the response; -1: none
  uint64_t body_bytes_in = 0;  // received bytes of the request body, without framing
  uint64_t body_bytes_out = 0;
  bool client_disconnected = false;  // before the end of the response
  bool framing_error = false;        // refused without calling the handler
  // Beast read the request differently than the guard in front of it (head_guard.h).
  bool parsers_disagreed = false;
};

struct ServerOptions {
  // Limits in bytes (docs/design/hostile-inputs.md 2).
  size_t max_head_bytes = 16 * 1024;
  size_t max_target_bytes = 8 * 1024;
  size_t max_fields = 100;
  size_t max_body_bytes = 16 * 1024 * 1024;
  size_t max_chunk_extension_bytes = 4 * 1024;
  size_t max_trailer_bytes = 8 * 1024;
  // Limit of bytes that arrive while a request runs.
  size_t max_pipelined_bytes = 32 * 1024;
  int64_t handshake_timeout_ms = 10'000;  // for TLS
  int64_t head_timeout_ms = 10'000;
  // A body slower than min_body_bytes_per_second over this window is rejected.
  int64_t body_window_ms = 20'000;
  int64_t min_body_bytes_per_second = 1024;
  // Longest time for a body to arrive.
  int64_t max_body_ms = 300'000;
  int64_t write_stall_ms = 30'000;
  int64_t idle_timeout_ms = 75'000;
  // How long a rejected client may continue to send, between two bytes and in total. The bytes are
  // discarded: many clients read the response only after they have sent everything.
  int64_t linger_idle_ms = 2'000;
  int64_t linger_ms = 30'000;
  int max_connections = 20'000;
  // Limit per IPv4 address or IPv6 /64 network; 0: a quarter of max_connections. Trusted proxies
  // are exempt.
  int max_connections_per_address = 0;
  // A connection with this descriptor or a higher one needs the place of an idle one, so that the
  // rest of the process keeps enough descriptors: they are numbered from 0 without gaps. 0: no
  // limit.
  int max_descriptor = 0;

  // The proxies whose X-Forwarded-For is trusted (HttpRequest::peer_address).
  TrustedProxies trusted_proxies;
  // Null: plain text.
  std::shared_ptr<TlsServerContext> tls;
  // Budget for request bodies and unsent responses; servers may share it. Null: no limit.
  std::shared_ptr<MemoryBudget> memory;
  // Null: no metrics.
  std::shared_ptr<ServerMetrics> metrics;

  // Creates the response to a request that could not be parsed, and may keep the error in its
  // attachment. The path is empty if unknown.
  // Default: plain text.
  std::function<HttpResponse(const Error&, HttpRequest&)> render_error;
  // Checks a complete head before the rest of its body is buffered (decision 46). Not called for
  // requests that arrived in full: their handler checks them. Default: no check.
  std::function<HeadVerdict(HttpRequest&, Loop&)> judge_head;
  // Headers added to every response.
  Headers headers;
  // Headers added to every response to this request.
  std::function<Headers(const HttpRequest&)> extra_headers;
  // Called on the loop of the request after the last byte of every response.
  std::function<void(const HttpRequest&, const RequestSummary&)> on_done;
};

// Headers of every response to a browser: no guessing of media types, and with https only https
// from now on.
Headers SecurityHeaders(bool https);

class Server {
 public:
  using Handler = std::function<Task<void>(Exchange&)>;

  // Connections are distributed over the loops of the pool. The handler runs on the loop of the
  // connection. If it returns without a response, the client gets a 500; an unfinished stream is
  // aborted.
  Server(LoopPool& loops, ServerOptions options, Handler handler);
  ~Server();  // Stop
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // address: "host:port"; port 0: a free port. Accepts connections at once.
  Result<void> Listen(const std::string& address);
  // The bound address, for example "127.0.0.1:40123".
  std::string address() const;
  uint16_t port() const;
  int connections() const;
  int running_requests() const;

  // Stops accepting, closes idle connections and waits until the running requests have ended or the
  // deadline (monotonic µs) has passed. Then the handlers that listen (Exchange::OnDrainOver) have
  // 2 s to end their responses with an error. Not on the thread of a loop.
  void Drain(int64_t deadline_us);
  // Closes all connections and waits for the handlers. The loops must still run. Not on the thread
  // of a loop.
  void Stop();

 private:
  std::shared_ptr<class ServerCore> core_;
};

// Request ids (decision 26).
bool IsWellFormedRequestId(std::string_view id);

}  // namespace tollgate::http
