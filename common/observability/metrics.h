// Prometheus metrics of this process. Names start with tollgate_ and carry their unit; label values
// come from small closed sets (no key ids, no raw model strings).
#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace tollgate::metrics {

using Labels = std::map<std::string, std::string>;

// Returns the metric with that name and labels; creates it on first use. The reference stays valid
// for the life of the process: look a metric up once and keep it, never once per token.
prometheus::Counter& Counter(const std::string& name, const std::string& help,
                             const Labels& labels = {});
prometheus::Gauge& Gauge(const std::string& name, const std::string& help,
                         const Labels& labels = {});
prometheus::Histogram& Histogram(const std::string& name, const std::string& help,
                                 const std::vector<double>& bounds, const Labels& labels = {});
// Upper bounds in seconds for latencies from 50 µs to 60 s.
const std::vector<double>& LatencyBounds();
// Calls the function before each Render, for gauges that are too expensive to keep current.
// Destroying the returned handle removes it; it does not run afterwards.
std::shared_ptr<void> BeforeRender(std::function<void()> update);
// All metrics in the Prometheus text format, for /metrics.
std::string Render();

}  // namespace tollgate::metrics
