// The access log's line and the HTTP metrics of every request.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/http/server.h"
#include "common/observability/metrics.h"
#include "gateway/edge/endpoint.h"

namespace tollgate::gateway {

// Thread-safe. Metrics are looked up once per endpoint and status, never on the way of a token.
class RequestLog {
 public:
  explicit RequestLog(const EndpointTable& table);

  void Started() { in_flight_.Increment(); }
  void Done(const HttpRequest& request, const http::RequestSummary& summary);

 private:
  struct Row {
    std::string name;
    prometheus::Histogram* duration;
    prometheus::Histogram* first_byte;
  };
  prometheus::Counter& CounterOf(size_t row, int status);

  std::vector<Row> rows_;  // as in the table, then one for everything unmatched
  prometheus::Gauge& in_flight_;
  prometheus::Counter& disconnects_;
  std::mutex mutex_;
  std::unordered_map<int64_t, prometheus::Counter*> counters_;  // by row and status
};

}  // namespace tollgate::gateway
