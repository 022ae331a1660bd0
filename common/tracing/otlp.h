// Writes spans as a message of OpenTelemetry's protocol.
#pragma once

#include <string>
#include <vector>

#include "common/tracing/span.h"
#include "tollgate/otlp/v1/trace.pb.h"

namespace tollgate::tracing {

// The times of the spans are Unix microseconds.
otlp::v1::ExportRequest ToOtlp(const ProcessName& process, const std::vector<Span>& spans);

}  // namespace tollgate::tracing
