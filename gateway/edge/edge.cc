#include "gateway/edge/edge.h"

#include "gateway/edge/cors.h"
#include "gateway/edge/request_log.h"

namespace tollgate::gateway {

struct Edge::State {
  State(EndpointTable endpoints, std::vector<std::string> origins, ErrorRenderer renderer)
      : table(std::move(endpoints)),
        cors(std::move(origins)),
        render_error(std::move(renderer)),
        request_log(table) {}

  const EndpointTable table;
  const Cors cors;
  const ErrorRenderer render_error;
  RequestLog request_log;
};

namespace {

HttpResponse NotFound(const ErrorRenderer& render, const HttpRequest& request) {
  return render(FamilyOfPath(request.path), Error{ErrorId::kNotFound}, request);
}

}  // namespace

Edge::Edge(LoopPool& loops, EdgeOptions options, EndpointTable table, ErrorRenderer render_error)
    : state_(std::make_shared<State>(std::move(table), std::move(options.cors_origins),
                                     std::move(render_error))) {
  std::shared_ptr<State> state = state_;
  options.server.render_error = [state](const Error& error, const HttpRequest& request) {
    return state->render_error(FamilyOfPath(request.path), error, request);
  };
  // Answers Expect: 100-continue with the 404 instead of asking for a body.
  options.server.refuse_unread = [state](const HttpRequest& request) {
    std::optional<HttpResponse> refusal;
    if (state->table.Find(request.method, request.path) < 0) {
      refusal = NotFound(state->render_error, request);
    }
    return refusal;
  };
  if (state->cors.enabled()) {
    options.server.extra_headers = [state](const HttpRequest& request) {
      return state->cors.ResponseHeaders(request);
    };
  }
  options.server.on_done = [state](const HttpRequest& request,
                                   const http::RequestSummary& summary) {
    state->request_log.OnDone(request, summary);
  };
  auto handler = [state](Exchange& exchange) -> Task<void> {
    state->request_log.OnStarted();
    HttpRequest& request = exchange.mutable_request();
    request.route = state->table.Find(request.method, request.path);
    if (request.route >= 0) {
      const Endpoint& endpoint = state->table.rows()[static_cast<size_t>(request.route)];
      return endpoint.handler(exchange, endpoint);
    }
    if (state->cors.IsPreflight(request)) {
      return SendResponse(exchange, state->cors.AnswerPreflight(request));
    }
    return SendResponse(exchange, NotFound(state->render_error, request));
  };
  server_ = std::make_unique<http::Server>(loops, std::move(options.server), std::move(handler));
}

Task<void> Edge::SendResponse(Exchange& exchange, HttpResponse response) {
  co_await exchange.Send(std::move(response));
}

Edge::~Edge() { Stop(); }
Result<void> Edge::Listen(const std::string& address) { return server_->Listen(address); }
std::string Edge::address() const { return server_->address(); }
uint16_t Edge::port() const { return server_->port(); }
void Edge::Drain(int64_t deadline_us) { server_->Drain(deadline_us); }
void Edge::Stop() { server_->Stop(); }

}  // namespace tollgate::gateway
