// The public HTTP front: server, endpoint table, request ids, CORS, access log and metrics.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/error/error.h"
#include "common/http/server.h"
#include "gateway/edge/endpoint.h"

namespace tollgate::gateway {

// Makes an error into bytes (gateway/envelopes).
using ErrorRenderer = std::function<HttpResponse(Family, const Error&, const HttpRequest&)>;

struct EdgeOptions {
  http::ServerOptions server;  // its callbacks are set by the edge
  // Origins that browsers may call from; "*" is any; empty: CORS off.
  std::vector<std::string> cors_origins;
};

class Edge {
 public:
  Edge(LoopPool& loops, EdgeOptions options, EndpointTable table, ErrorRenderer render_error);
  ~Edge();

  // "host:port"; port 0 takes a free one.
  Result<void> Listen(const std::string& address);
  std::string address() const;
  uint16_t port() const;
  // See http::Server.
  void Drain(int64_t deadline_us);
  void Stop();

 private:
  struct State;
  static Task<void> SendOnly(Exchange& exchange, HttpResponse response);
  std::shared_ptr<State> state_;  // the server's callbacks hold it too
  std::unique_ptr<http::Server> server_;
};

}  // namespace tollgate::gateway
