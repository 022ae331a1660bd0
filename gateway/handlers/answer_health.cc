#include "gateway/handlers/answer_health.h"

#include "gateway/envelopes/envelope.h"

namespace tollgate::gateway {

Task<void> AnswerHealth(bool accepting, Exchange& exchange, const Endpoint& endpoint) {
  HttpResponse response;
  if (accepting) {
    response.headers = {{"content-type", "application/json"}};
    response.body = R"({"status":"ok"})";
  } else {
    response =
        RenderError(endpoint.family, Error{ErrorId::kServiceUnavailable}, exchange.request());
  }
  response.headers.emplace_back("cache-control", "no-store");
  (void)co_await exchange.Send(std::move(response));
}

}  // namespace tollgate::gateway
