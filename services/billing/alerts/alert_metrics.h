// Metrics of alerts.
#pragma once

#include <string>

#include "services/billing/alerts/alert_types.h"

namespace tollgate::billing::alerts {

class AlertMetrics {
 public:
  AlertMetrics();
  void OnNotice(AlertKind kind);
  // result: delivered, failed or given_up.
  void OnDelivery(Channel channel, const std::string& result);
  void SetOldest(int64_t created_us, int64_t now_us);
};

}  // namespace tollgate::billing::alerts
