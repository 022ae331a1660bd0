// Metrics of settlements that could not be read, delivered or booked. Thread-safe. Every series
// exists from the start, so that alerts see the first increase.
#pragma once

#include <string_view>

#include "common/observability/metrics.h"
#include "tollgate/billing/v1/billing.pb.h"

namespace tollgate::inference_router {

class SettlementMetrics {
 public:
  // The only instance of the process. Creates the series.
  static SettlementMetrics& Get();

  void CountQuarantined(std::string_view reason);
  // file: outbox, journal or state.
  void CountLostFile(std::string_view file);
  // source: live or recovered.
  void CountRefused(billing::v1::DenyReason reason, std::string_view source);
  // result: recovered, older_copy, other_boot or damaged.
  void CountJournal(std::string_view result, int64_t requests);
  void CountLostAdmissions(int64_t requests);

 private:
  SettlementMetrics();
  prometheus::Counter& lost_admissions_;
};

}  // namespace tollgate::inference_router
