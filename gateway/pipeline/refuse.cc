#include "gateway/pipeline/refuse.h"

#include "common/observability/log.h"
#include "gateway/envelopes/envelope.h"
#include "gateway/pipeline/limit_headers.h"

namespace tollgate::gateway {

Task<void> RefuseRequest(Worker& worker, Exchange& exchange, const Endpoint& endpoint, Error error,
                         Headers limit_headers) {
  const ErrorRow& row = error.row();
  if (row.http_status >= 500) {
    log::Warn("request failed", {{"x_request_id", exchange.request().x_request_id},
                                 {"endpoint", endpoint.name},
                                 {"error", error.ToString()}});
  }
  worker.metrics.CountRequest(endpoint.name, row.http_status, row.code);
  HttpResponse response = RenderError(endpoint.family, error, exchange.request());
  if (row.http_status == 429) AddHeaders(limit_headers, response.headers);
  (void)co_await exchange.Send(std::move(response));
}

}  // namespace tollgate::gateway
