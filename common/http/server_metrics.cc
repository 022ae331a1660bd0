#include "common/http/server_metrics.h"

#include <string>

#include "common/observability/metrics.h"

namespace tollgate::http {
namespace {

prometheus::Counter* Shed(const std::string& step) {
  return &metrics::Counter("tollgate_http_shed_total",
                           "What was refused (503) or closed because memory is short, by step: "
                           "large_body from 85 % of the budget on, request from 90 %, idle (closed "
                           "connections) from 95 %, body when the budget is full",
                           {{"step", step}});
}

prometheus::Counter* Slow(const std::string& part) {
  return &metrics::Counter("tollgate_http_slow_clients_total",
                           "Clients disconnected because they were too slow in a part of the "
                           "request: TLS handshake, head, body (too slow, or too long in total), "
                           "reader of the response",
                           {{"part", part}});
}

prometheus::Counter* Refused(const std::string& reason) {
  return &metrics::Counter("tollgate_http_connections_refused_total",
                           "Connections closed as soon as they were accepted: the server is full "
                           "and none is idle, the address is at its limit, or the other file "
                           "descriptors are reserved",
                           {{"reason", reason}});
}

}  // namespace

ServerMetrics::ServerMetrics()
    : memory_used(metrics::Gauge("tollgate_http_memory_bytes",
                                 "Counted memory of request bodies and unsent responses")),
      memory_limit(metrics::Gauge("tollgate_http_memory_limit_bytes",
                                  "The budget of tollgate_http_memory_bytes")),
      connections(metrics::Gauge("tollgate_http_connections", "Open client connections")),
      idle_connections(metrics::Gauge(
          "tollgate_http_connections_idle",
          "Open client connections that wait for a request or discard a refused one")),
      connection_limit(
          metrics::Gauge("tollgate_http_connections_limit", "Most open client connections")),
      evicted(metrics::Counter("tollgate_http_connections_evicted_total",
                               "Idle connections closed for new ones because the server was full, "
                               "or out of file descriptors")),
      slow_{Slow("handshake"), Slow("head"), Slow("body"), Slow("reader")},
      refused_{Refused("full"), Refused("address"), Refused("descriptors")},
      shed_{Shed("large_body"), Shed("request"), Shed("idle"), Shed("body")} {}

}  // namespace tollgate::http
