#include "services/inference_router/rpc/link_request.h"

#include <string>

#include "common/observability/metrics.h"
#include "common/rpc/error_detail.h"

namespace tollgate::inference_router {

Error DrainingError() { return Unavailable(Reason::kStopping, kLinkRefusal).error; }

std::optional<Error> RefusalReason(const RequestCore& core,
                                   const inference::v1::GenerateRequest& request) {
  if (core.draining) return DrainingError();
  return RefuseBody(core.bodies.limits, static_cast<int64_t>(request.members_json().size()));
}

namespace {

prometheus::Counter& Refusals(std::string_view error) {
  return metrics::Counter(
      "tollgate_router_refused_total",
      "Requests from gateways that the router refused before they ran, by error.",
      {{"error", std::string(error)}});
}

}  // namespace

void MakeRefusalCounters() {
  for (const ErrorId error : {ErrorId::kRequestTooLarge, ErrorId::kServiceUnavailable}) {
    Refusals(RowOf(error).name);
  }
}

void CountRefusal(const Error& error) { Refusals(error.row().name).Increment(); }

inference::v1::Event RefusalOf(const Error& error) {
  inference::v1::Event event;
  event.mutable_end()->set_not_run(true);
  rpc::ToDetail(error, *event.mutable_end()->mutable_error());
  return event;
}

}  // namespace tollgate::inference_router
