#include "gateway/edge/edge.h"

#include "gateway/edge/cors.h"
#include "gateway/edge/request_log.h"
#include "gateway/edge/request_trace.h"

namespace tollgate::gateway {

struct Edge::State {
  State(EndpointTable endpoints, EdgeOptions& options, ErrorRenderer renderer)
      : table(std::move(endpoints)),
        cors(std::move(options.cors_origins)),
        judge_head(std::move(options.judge_head)),
        render_error(std::move(renderer)),
        request_log(table) {}

  HttpResponse Refuse(const Error& error, HttpRequest& request) const {
    NoteFailure(request, error);
    return render_error(FamilyOfPath(request.path), error, request);
  }
  HttpResponse AnswerUnmatched(HttpRequest& request) const {
    if (cors.IsPreflight(request)) return cors.AnswerPreflight(request);
    return Refuse({.id = ErrorId::kNotFound, .reason = Reason::kNoEndpoint}, request);
  }
  // Path and method are checked first, then the endpoint judges the head (decision 16).
  http::HeadVerdict Judge(HttpRequest& request, Loop& loop) const {
    request.route = table.Find(request.method, request.path);
    if (request.route < 0) return {AnswerUnmatched(request), std::nullopt};
    if (!judge_head) return {};
    const Endpoint& endpoint = *EndpointOf(request);
    if (!endpoint.is_probe) BeginTrace(request);
    return judge_head(endpoint, request, loop);
  }

  // Returns null when no endpoint matches.
  const Endpoint* EndpointOf(const HttpRequest& request) const {
    return request.route < 0 ? nullptr : &table.rows()[static_cast<size_t>(request.route)];
  }

  const EndpointTable table;
  const Cors cors;
  const decltype(EdgeOptions::judge_head) judge_head;
  const ErrorRenderer render_error;
  RequestLog request_log;
};

Edge::Edge(LoopPool& loops, EdgeOptions options, EndpointTable table, ErrorRenderer render_error)
    : state_(std::make_shared<State>(std::move(table), options, std::move(render_error))) {
  std::shared_ptr<State> state = state_;
  options.server.render_error = [state](const Error& error, HttpRequest& request) {
    return state->Refuse(error, request);
  };
  options.server.judge_head = [state](HttpRequest& request, Loop& loop) {
    return state->Judge(request, loop);
  };
  options.server.headers = http::SecurityHeaders(/*https=*/options.server.tls != nullptr);
  if (state->cors.enabled()) {
    options.server.extra_headers = [state](const HttpRequest& request) {
      return state->cors.ResponseHeaders(request);
    };
  }
  options.server.on_done = [state](const HttpRequest& request,
                                   const http::RequestSummary& summary) {
    state->request_log.OnDone(request, summary);
    EndTrace(request, summary, state->EndpointOf(request));
  };
  auto handler = [state](Exchange& exchange) -> Task<void> {
    state->request_log.OnStarted();
    HttpRequest& request = exchange.mutable_request();
    request.route = state->table.Find(request.method, request.path);
    const Endpoint* const endpoint = state->EndpointOf(request);
    if (endpoint == nullptr || !endpoint->is_probe) BeginTrace(request);
    if (endpoint != nullptr) return endpoint->handler(exchange, *endpoint);
    return SendResponse(exchange, state->AnswerUnmatched(request));
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
