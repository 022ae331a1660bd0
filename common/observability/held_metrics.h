// Metrics whose labels come and go, such as addresses: a series exists while a part holds it, and
// all who hold one of the same name and labels share it. Not for a name that metrics.h has, too.
#pragma once

#include <memory>
#include <string>

#include "common/observability/metrics.h"

namespace tollgate::metrics {

// As Counter and Gauge. Thread-safe.
std::shared_ptr<prometheus::Counter> HeldCounter(const std::string& name, const std::string& help,
                                                 const Labels& labels);
std::shared_ptr<prometheus::Gauge> HeldGauge(const std::string& name, const std::string& help,
                                             const Labels& labels);

}  // namespace tollgate::metrics
