#include "gateway/handlers/ledger_report.h"

#include <algorithm>
#include <utility>

#include "gateway/pipeline/answer/refuse.h"

namespace tollgate::gateway {

Task<Result<KeyedQueue::Ticket>> TakeReportTurn(Worker& worker, const Exchange& exchange,
                                                const std::string& workspace_id) {
  KeyedQueue::Ticket ticket = co_await worker.usage_report_queue->Acquire(workspace_id);
  if (!ticket) {
    co_return Fail{
        Error{.id = ErrorId::kRateLimited,
              .message = "Too many usage reports and receipts of this workspace are waiting.",
              .retry_after_ms = 1000,
              .reason = Reason::kReports}};
  }
  if (exchange.disconnected()) co_return Unavailable("the client disconnected");
  co_return std::move(ticket);
}

Error ReportUnavailable(const Error& billing) {
  return Unavailable(Reason::kBillingUnavailable, "billing: " + billing.ToString(),
                     std::max<int64_t>(billing.retry_after_ms, 1000))
      .error;
}

Task<void> SendReport(Worker& worker, Exchange& exchange, const Endpoint& endpoint,
                      Result<std::string> json) {
  if (exchange.disconnected()) co_return worker.metrics.CountClientDisconnect();
  if (!json) co_return co_await RefuseRequest(worker, exchange, endpoint, std::move(json).error());
  HttpResponse response;
  response.headers = {{"content-type", "application/json"}, {"cache-control", "no-store"}};
  response.body = std::move(*json);
  worker.metrics.CountRequest(endpoint.name, response.status, "");
  (void)co_await exchange.Send(std::move(response));
}

}  // namespace tollgate::gateway
