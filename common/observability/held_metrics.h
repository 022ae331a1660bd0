// Metrics whose labels come and go, such as addresses: a series exists while at least one handle
// holds it. Handles with the same name and labels share the series. Do not use a name that
// metrics.h also has.
#pragma once

#include <memory>
#include <string>

#include "common/observability/metrics.h"

namespace tollgate::metrics {

// Like Counter and Gauge of metrics.h. Thread-safe.
std::shared_ptr<prometheus::Counter> HeldCounter(const std::string& name, const std::string& help,
                                                 const Labels& labels);
std::shared_ptr<prometheus::Gauge> HeldGauge(const std::string& name, const std::string& help,
                                             const Labels& labels);

}  // namespace tollgate::metrics
