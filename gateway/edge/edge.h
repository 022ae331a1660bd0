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

// Renders an error as a response (gateway/envelopes).
using ErrorRenderer = std::function<HttpResponse(Family, const Error&, const HttpRequest&)>;

struct EdgeOptions {
  http::ServerOptions server;  // its callbacks are set by the edge
  // Allowed CORS origins; "*" allows any; empty disables CORS.
  std::vector<std::string> cors_origins;
  // Judges the head of a request to this endpoint before its body is buffered
  // (gateway/pipeline/judge_head.h). Default: every head is accepted.
  std::function<http::HeadVerdict(const Endpoint&, HttpRequest&, Loop&)> judge_head;
};

class Edge {
 public:
  Edge(LoopPool& loops, EdgeOptions options, EndpointTable table, ErrorRenderer render_error);
  ~Edge();

  // "host:port"; port 0 picks a free one.
  Result<void> Listen(const std::string& address);
  std::string address() const;
  uint16_t port() const;
  // See http::Server.
  void Drain(int64_t deadline_us);
  void Stop();

 private:
  struct State;
  static Task<void> SendResponse(Exchange& exchange, HttpResponse response);
  std::shared_ptr<State> state_;  // shared with the server's callbacks
  std::unique_ptr<http::Server> server_;
};

}  // namespace tollgate::gateway
