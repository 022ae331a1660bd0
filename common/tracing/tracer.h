// The traces of this process: which requests are traced, and where their spans go. As with the log,
// there is one for the whole process. All functions are thread-safe.
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

// Starts the exporter when the configuration names a collector. Before the first request. Does not
// wait for the collector. Fails when the configuration is wrong.
Result<void> Start(const config::v1::TracingConfig& config, ProcessName process);
// Sends what is left, for at most so long, and ends the exporter. After the last request.
void Stop(int64_t timeout_ms);
// Whether there is a collector. Without one no request keeps anything for a trace.
bool Enabled();

// Whether the head samples the trace. client_flag: that of a client's traceparent, if it sent one.
// The same for all requests of a trace, but no client can choose a trace id that is sampled: the
// ids are hashed with a secret of the process.
bool IsSampledByHead(const TraceId& id, std::optional<bool> client_flag);

// Who is at fault.
enum class Failure : uint8_t {
  kNone,
  kRefused,  // the caller: 4xx
  kBroken,   // Tollgate or an engine: 5xx, or an answer that broke off
};
// Failures of each kind in a second that are traced though the head has not sampled them: a flood
// of refusals must not crowd out what matters.
inline constexpr int kTracedFailuresPerSecond = 100;
// Whether the request is exported. Asked once, at its end.
bool IsExported(const TraceContext& context, Failure failure);

// Takes the spans of one request. Never waits; drops them when too many wait.
void Record(std::vector<Span> spans);

}  // namespace tollgate::tracing
