#include "services/billing/alerts/alert_metrics.h"

#include "common/observability/metrics.h"

namespace tollgate::billing::alerts {
namespace {

prometheus::Counter& Notices(AlertKind kind) {
  return metrics::Counter("tollgate_billing_notices_total",
                          "Notices about money that became due, by kind.",
                          {{"kind", std::string(Name(kind))}});
}

prometheus::Counter& Deliveries(Channel channel, const std::string& result) {
  return metrics::Counter(
      "tollgate_billing_notice_deliveries_total",
      "Attempts to deliver a notice by channel and result. given_up: all attempts "
      "failed for three days.",
      {{"channel", std::string(Name(channel))}, {"result", result}});
}

prometheus::Gauge& Oldest() {
  return metrics::Gauge("tollgate_billing_notice_waiting_seconds",
                        "Age of the oldest notice that is not delivered yet.");
}

}  // namespace

AlertMetrics::AlertMetrics() {
  // All counters exist from the start, so that alerts see them rise from zero.
  for (const Channel channel : {Channel::kMail, Channel::kWebhook}) {
    for (const char* result : {"delivered", "failed", "given_up"}) Deliveries(channel, result);
  }
  for (const AlertKind kind :
       {AlertKind::kLowBalance, AlertKind::kCapPercent, AlertKind::kReloadFailed,
        AlertKind::kReloadPaused, AlertKind::kBooksDisagree, AlertKind::kDisputeOpened,
        AlertKind::kDisputeWon, AlertKind::kDisputeLost, AlertKind::kFrozen}) {
    Notices(kind);
  }
  Oldest();
}

void AlertMetrics::OnNotice(AlertKind kind) { Notices(kind).Increment(); }
void AlertMetrics::OnDelivery(Channel channel, const std::string& result) {
  Deliveries(channel, result).Increment();
}
void AlertMetrics::SetOldest(int64_t created_us, int64_t now_us) {
  Oldest().Set(created_us > 0 ? static_cast<double>(now_us - created_us) / 1e6 : 0);
}

}  // namespace tollgate::billing::alerts
