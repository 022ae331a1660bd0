// HTTP/1.1 server: strict framing, limits, keep-alive and pipelining, answers streamed with
// back-pressure, clients watched while their request runs. Knows nothing of endpoints or envelopes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/error/error.h"
#include "common/http/exchange.h"
#include "common/http/trusted_proxies.h"
#include "common/runtime/loop.h"

namespace tollgate::http {

class TlsServerContext;

// What a request came to, for logs and metrics.
struct RequestSummary {
  int status = 0;              // 0: nothing was sent
  int64_t duration_us = 0;     // from the last byte of the request
  int64_t first_byte_us = -1;  // the same, to the first byte of the answer; -1: none
  uint64_t body_bytes_in = 0;  // of the request, as far as it was read, without framing
  uint64_t body_bytes_out = 0;
  bool client_gone = false;    // the client left before the end of the answer
  bool framing_error = false;  // refused before any handler saw it
};

struct ServerOptions {
  // Bytes, reliability.md section 5.
  size_t max_head_bytes = 16 * 1024;
  size_t max_target_bytes = 8 * 1024;
  size_t max_fields = 100;
  size_t max_body_bytes = 16 * 1024 * 1024;
  size_t max_chunk_extension_bytes = 4 * 1024;
  size_t max_trailer_bytes = 8 * 1024;
  // Of bytes that arrive while a request runs.
  size_t max_pipelined_bytes = 32 * 1024;
  int64_t handshake_timeout_ms = 10'000;  // of TLS
  int64_t head_timeout_ms = 10'000;
  // Bodies that come slower than min_body_bytes_per_second over this window are refused.
  int64_t body_window_ms = 20'000;
  int64_t min_body_bytes_per_second = 1024;
  int64_t write_stall_ms = 30'000;
  int64_t idle_timeout_ms = 75'000;
  // How long a client that still sends what nobody wants is borne, so that its refusal arrives:
  // between two of its bytes, and in all. Many read no answer before they have sent everything.
  int64_t linger_idle_ms = 2'000;
  int64_t linger_ms = 30'000;
  int max_connections = 20'000;
  // 0: half of max_connections. Trusted proxies may have all.
  int max_connections_per_address = 0;

  // Who may say in X-Forwarded-For for whom a request is (HttpRequest::peer_address).
  TrustedProxies trusted_proxies;
  // Null: plain text.
  std::shared_ptr<TlsServerContext> tls;

  // Makes the answer to a request that could not be read. path is empty when it is not known. Plain
  // text when not set.
  std::function<HttpResponse(const Error&, const HttpRequest&)> render_error;
  // Asked with a head whose body waits for 100 Continue: the refusal, if the head suffices for one.
  std::function<std::optional<HttpResponse>(const HttpRequest&)> refuse_unread;
  // Appends header lines ("name: value\r\n") to the head of every answer.
  std::function<void(const HttpRequest&, std::string& head)> extra_headers;
  // After the last byte of every answer, on its loop.
  std::function<void(const HttpRequest&, const RequestSummary&)> on_done;
};

class Server {
 public:
  using Handler = std::function<Task<void>(Exchange&)>;

  // Connections are spread over the loops of the pool. The handler runs on the connection's loop;
  // one that returns without an answer gives a 500, or cuts the stream it has begun.
  Server(LoopPool& loops, ServerOptions options, Handler handler);
  ~Server();  // Stop
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // "host:port"; port 0 takes a free one. Starts to accept at once.
  Result<void> Listen(const std::string& address);
  // What was really bound, for example "127.0.0.1:40123".
  std::string address() const;
  uint16_t port() const;
  int connections() const;
  int running_requests() const;

  // Stops accepting, closes idle connections and waits until the running requests have ended or the
  // deadline (monotonic µs) has passed. Not on a loop's thread.
  void Drain(int64_t deadline_us);
  // Closes everything and waits for the handlers to end. The loops must still run. Not on a loop's
  // thread.
  void Stop();

 private:
  std::shared_ptr<class ServerCore> core_;
};

// Request ids as decisions.md 26 wants them.
bool IsWellFormedRequestId(std::string_view id);
std::string NewRequestId();

}  // namespace tollgate::http
