// The access log and the HTTP metrics.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/error/reason.h"
#include "common/http/server.h"
#include "common/observability/log.h"
#include "common/observability/metrics.h"
#include "gateway/edge/endpoint.h"

namespace tollgate::gateway {

// Thread-safe. Looks a metric up once per endpoint and status; nothing here runs per token.
class RequestLog {
 public:
  explicit RequestLog(const EndpointTable& table);

  void OnStarted() { in_flight_.Increment(); }
  void OnDone(const HttpRequest& request, const http::RequestSummary& summary);

 private:
  struct Row {
    std::string name;
    log::Level level;
    prometheus::Histogram* duration;
    prometheus::Histogram* first_byte;
  };
  prometheus::Counter& CounterOf(size_t row, int status);
  void CountDenial(Reason reason);

  std::vector<Row> rows_;  // in the order of the table, then one for unmatched requests
  prometheus::Gauge& in_flight_;
  prometheus::Counter& disconnects_;
  prometheus::Counter& disagreements_;
  std::array<prometheus::Counter*, kReasonCount> denials_{};  // by Reason; null for kNone
  std::mutex mutex_;
  std::unordered_map<int64_t, prometheus::Counter*> counters_;  // by row and status
};

}  // namespace tollgate::gateway
