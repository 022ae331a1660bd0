#include "tests/support/metrics.h"

#include <cstdlib>

namespace tollgate::test {
namespace {

constexpr const char* kGaugesOfWork[] = {"tollgate_http_requests_in_flight",
                                         "tollgate_http_memory_bytes",
                                         "tollgate_router_running_requests",
                                         "tollgate_router_engine_running_requests",
                                         "tollgate_router_engine_outstanding_tokens",
                                         "tollgate_router_queue_waiting",
                                         "tollgate_router_incoming_body_bytes",
                                         "tollgate_router_link_queued_bytes",
                                         "tollgate_router_outbox_depth",
                                         "tollgate_billing_open_holds",
                                         "tollgate_billing_queue_operations",
                                         "tollgate_ratelimit_leases"};

}  // namespace

std::optional<double> SumOfMetric(Cluster& cluster, const std::string& name) {
  std::optional<double> sum;
  for (const std::string& process : cluster.process_names()) {
    const std::string text = Http(cluster.admin_port(process), "GET", "/metrics").body;
    for (size_t at = 0; (at = text.find("\n" + name, at)) != std::string::npos;) {
      at += name.size() + 1;
      if (text[at] != '{' && text[at] != ' ') continue;
      if (text[at] == '{') at = text.find("} ", at) + 1;
      sum = sum.value_or(0) + std::atof(text.c_str() + at + 1);
    }
  }
  return sum;
}

std::string WaitWithoutWork(Cluster& cluster, int64_t timeout_ms) {
  // Direct calls within one process use no links.
  const bool links = cluster.process_names().size() > 1;
  std::string busy;
  for (const std::string gauge : kGaugesOfWork) {
    std::optional<double> value;
    const bool idle = WaitUntil(
        [&] {
          value = SumOfMetric(cluster, gauge);
          return value == 0 || (!value && !links && gauge.ends_with("_bytes"));
        },
        timeout_ms, 50);
    if (!idle) busy += gauge + " is " + (value ? std::to_string(*value) : "missing") + "\n";
  }
  return busy;
}

}  // namespace tollgate::test
