#include "gateway/refuse.h"

#include "common/observability/log.h"
#include "gateway/envelopes/envelope.h"

namespace tollgate::gateway {

Task<void> RefusePlain(Worker& worker, Exchange& exchange, const Endpoint& endpoint, Error error) {
  const ErrorRow& row = error.row();
  if (row.http_status >= 500) {
    log::Warn("request failed", {{"x_request_id", exchange.request().x_request_id},
                                 {"endpoint", endpoint.name},
                                 {"error", error.ToString()}});
  }
  worker.metrics.CountRequest(endpoint.name, row.http_status, row.code);
  (void)co_await exchange.Send(RenderError(endpoint.family, error, exchange.request()));
}

}  // namespace tollgate::gateway
