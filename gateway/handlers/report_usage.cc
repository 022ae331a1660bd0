#include "gateway/handlers/report_usage.h"

#include <limits>

#include "common/base/try.h"
#include "gateway/handlers/ledger_report.h"
#include "gateway/handlers/usage_report.h"
#include "gateway/pipeline/admission/limits.h"
#include "gateway/pipeline/checks/authenticate.h"

namespace tollgate::gateway {

namespace {

namespace rl = ratelimit::v1;

Task<Result<billing::v1::GetUsageResponse>> ReadLedger(Worker& worker, const Exchange& exchange,
                                                       const auth::v1::Key& key,
                                                       const UsagePeriod& period) {
  CO_TRY(const auto turn, co_await TakeReportTurn(worker, exchange, key.workspace_id()));
  billing::v1::GetUsageRequest request;
  request.set_workspace_id(key.workspace_id());
  request.set_key_id(key.key_id());
  request.set_start_us(period.start_us);
  // Does not send the gateway's time, because the ledger's clock may be ahead.
  request.set_end_us(period.until_now ? std::numeric_limits<int64_t>::max() : period.end_us);
  auto answer = co_await worker.clients.billing->GetUsage(std::move(request));
  if (answer) co_return std::move(*answer);
  co_return Fail{ReportUnavailable(answer.error())};
}

// The remaining limits of the key or its workspace. Empty when there are none, and when the
// limiter is unreachable: the report then states no remainder.
Task<std::optional<rl::PeekResponse>> PeekLimits(Worker& worker, const auth::v1::Key& key,
                                                 bool of_workspace) {
  const auth::v1::Limits& limits = of_workspace ? key.workspace_limits() : key.key_limits();
  if (IsUnlimited(limits)) co_return std::nullopt;
  rl::PeekRequest request;
  request.set_workspace_id(key.workspace_id());
  request.set_key_id(key.key_id());
  CopyLimits(limits,
             of_workspace ? *request.mutable_workspace_limits() : *request.mutable_key_limits());
  auto answer = co_await worker.clients.limiter->Peek(std::move(request));
  if (!answer) co_return std::nullopt;
  co_return std::move(*answer);
}

Task<Result<std::string>> BuildReport(Worker& worker, Exchange& exchange,
                                      CredentialRule credential) {
  HttpRequest& request = exchange.mutable_request();
  CO_TRY(const auto key, co_await AuthenticateRequest(worker, request, credential));
  NoteCaller(request, key->key_id(), key->workspace_id());
  worker.key_use->Count(key->key_id(), request.peer_address);
  CO_TRY(const auto period, ParseUsageQuery(request.query, worker.clock.WallUs()));
  CO_TRY(auto usage, co_await ReadLedger(worker, exchange, *key, period));
  UsageReport report;
  report.period = period;
  report.usage = std::move(usage);
  report.key_remaining = co_await PeekLimits(worker, *key, false);
  report.workspace_remaining = co_await PeekLimits(worker, *key, true);
  co_return RenderUsageReport(*key, report);
}

}  // namespace

Task<void> ReportUsage(Worker& worker, Exchange& exchange, const Endpoint& endpoint) {
  auto body = co_await BuildReport(worker, exchange, endpoint.credential);
  co_await SendReport(worker, exchange, endpoint, std::move(body));
}

}  // namespace tollgate::gateway
