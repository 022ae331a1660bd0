#include <algorithm>

#include "common/rpc/error_status.h"
#include "services/billing/alerts/alert_store.h"
#include "services/billing/payments/payment_store.h"
#include "services/billing/rpc/admin_calls.h"
#include "services/billing/rpc/convert.h"
#include "services/billing/reports/summary.h"
#include "tollgate/billing/v1/summary.grpc.pb.h"

namespace tollgate::billing {
namespace {

void Fill(const WorkspaceSummary& summary, v1::ReadSummaryResponse& into) {
  FromBalance(summary.balance, *into.mutable_balance());
  if (summary.balance.frozen != Freeze::kNone) {
    into.set_frozen(std::string(FreezeName(summary.balance.frozen)));
  }
  into.set_requests(summary.today.requests);
  into.set_free_requests(summary.today.free_requests);
  const Usage& usage = summary.today.usage;
  into.mutable_usage()->set_prompt_tokens(usage.prompt);
  into.mutable_usage()->set_cached_tokens(usage.cached);
  into.mutable_usage()->set_cache_write_tokens(usage.cache_write);
  into.mutable_usage()->set_completion_tokens(usage.completion);
  into.mutable_usage()->set_reasoning_tokens(usage.reasoning);
  into.set_charged_nano_usd(summary.today.charged_nano_usd);
  into.set_week_charged_nano_usd(summary.week_charged_nano_usd);
  for (const std::string& model : summary.week_models) into.add_week_models(model);
  into.set_recent_requests(summary.recent_requests);
  into.set_recent_start_us(summary.recent_start_us);
  for (const auto& [outcome, count] : summary.outcomes) {
    (*into.mutable_outcomes())[std::string(OutcomeName(outcome))] += count;
  }
  if (summary.first_token_p50_us) into.set_first_token_p50_us(*summary.first_token_p50_us);
  if (summary.first_token_p95_us) into.set_first_token_p95_us(*summary.first_token_p95_us);
}

void Fill(const payments::AutoReload& reload, v1::ReadSummaryResponse& into) {
  if (!reload.enabled) return;
  if (reload.state == payments::ReloadState::kPaused) {
    into.set_auto_reload("PAUSED");
    into.set_pause_reason(reload.pause_reason);
  } else if (reload.state == payments::ReloadState::kBackoff) {
    into.set_auto_reload("BACKOFF");
  }
}

class SummaryRpc : public v1::SummaryService::CallbackService {
 public:
  explicit SummaryRpc(LedgerService& ledger) : ledger_(ledger) {}

  grpc::ServerUnaryReactor* ReadSummary(grpc::CallbackServerContext* context,
                                        const v1::ReadSummaryRequest* request,
                                        v1::ReadSummaryResponse* response) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    const int64_t now_us = ledger_.NowUs();
    ledger_.Read(
        [=](sql::Database& database) {
          reactor->Finish(Read(database, *request, now_us, *response));
        },
        [reactor](const Error& refused) { reactor->Finish(rpc::ToStatus(refused)); },
        [context] { return context->IsCancelled(); });
    return reactor;
  }

 private:
  static grpc::Status Read(sql::Database& database, const v1::ReadSummaryRequest& request,
                           int64_t now_us, v1::ReadSummaryResponse& response) {
    const std::string& workspace = request.workspace_id();
    auto summary = billing::ReadSummary(database, workspace, request.day_start_us(), now_us);
    if (!summary.ok()) return rpc::ToStatus(sql::ToError(summary.error()));
    auto reload = payments::PaymentStore(database).FindReload(workspace);
    if (!reload.ok()) return rpc::ToStatus(sql::ToError(reload.error()));
    auto setting = alerts::AlertStore(database).FindSetting(workspace);
    if (!setting.ok()) return rpc::ToStatus(sql::ToError(setting.error()));
    response.set_now_us(now_us);
    Fill(*summary, response);
    if (*reload) Fill(**reload, response);
    response.set_low_balance_nano_usd(setting->low_balance_nano_usd);
    return grpc::Status::OK;
  }

  LedgerService& ledger_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeSummaryRpc(LedgerService& ledger) {
  return std::make_unique<SummaryRpc>(ledger);
}

}  // namespace tollgate::billing
