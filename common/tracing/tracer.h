// Tracing of this process: which requests are traced, and where their spans go. Like the log, there
// is one per process. All functions are thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/error/error.h"
#include "common/tracing/span.h"

namespace tollgate::config::v1 {
class TracingConfig;
}

namespace tollgate::tracing {

// Starts the exporter if the configuration names a collector. Call it before the first request.
// Does not wait for the collector. Fails if the configuration is invalid.
Result<void> Start(const config::v1::TracingConfig& config, ProcessName process);
// Sends the remaining spans within this time and ends the exporter. Call it after the last request.
void Stop(int64_t timeout_ms);
// Whether there is a collector. Otherwise requests keep no data for a trace.
bool Enabled();

// Whether the head samples the trace. client_flag: from the client's traceparent, if it sent one.
// The result is the same for all requests of a trace, but a client cannot choose a trace id that is
// sampled: ids are hashed with a secret of the process.
bool IsSampledByHead(const TraceId& id, std::optional<bool> client_flag);

// The party at fault.
enum class Failure : uint8_t {
  kNone,
  kRefused,  // the caller: 4xx
  kBroken,   // Tollgate or an engine: 5xx, or an answer that was cut off
};
// Limit per second of failures of each kind that are traced although the head has not sampled them:
// a flood of refusals must not crowd out other failures.
inline constexpr int kTracedFailuresPerSecond = 100;
// Whether the request is exported. Call it once, at the request's end.
bool IsExported(const TraceContext& context, Failure failure);

// Takes the spans of one request. Never waits; drops them if the queue is full.
void Record(std::vector<Span> spans);

}  // namespace tollgate::tracing
