// What a request keeps for its trace: a fixed set of times and counts, written while it runs. The
// spans are made of it when the request has ended, and only if they are exported.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "common/error/error.h"
#include "common/http/server.h"
#include "common/observability/log.h"
#include "common/tracing/trace_context.h"
#include "gateway/edge/endpoint.h"
#include "gateway/edge/exchange.h"

namespace tollgate::gateway {

// The parts of a request that have a span of their own. kRoute lasts from the first router that is
// asked to the end of the last one's answer, kStream from the first token to the last byte.
enum class Stage : uint8_t { kAuthenticate, kAdmit, kAuthorize, kRoute, kStream };
inline constexpr int kStages = 5;

struct RequestTrace {
  // Monotonic microseconds; 0: not yet.
  struct Times {
    int64_t begin_us = 0;
    int64_t end_us = 0;
  };

  tracing::TraceContext context;  // of the request's own span
  tracing::SpanId parent = 0;     // the caller's span; 0: the trace begins here
  std::string tracestate;         // the caller's, to be passed on
  int64_t begin_us = 0;
  std::array<Times, kStages> stages{};
  const ErrorRow* error = nullptr;  // why it failed

  // Of a request that generates, set at its end.
  std::string_view operation;  // empty: it does not
  std::string model;           // an id of the catalog, or "unlisted"; empty: none was found
  std::string workspace_id;
  std::string_view finish_reason;
  bool streamed = false;
  int64_t max_tokens = 0;
  int64_t prompt_tokens = 0;
  int64_t completion_tokens = 0;
  // Routers and models that were asked after the first one.
  int64_t further_tries = 0;

  Times& of(Stage stage) { return stages[static_cast<size_t>(stage)]; }
  const Times& of(Stage stage) const { return stages[static_cast<size_t>(stage)]; }
  tracing::TraceContext ContextOf(Stage stage) const {
    return context.Child(tracing::ChildSpanId(context.span_id, static_cast<int>(stage)));
  }
};

// Null: requests are not traced, or this one is not.
inline RequestTrace* TraceOf(const HttpRequest& request) {
  return static_cast<RequestTrace*>(request.attachment.get());
}
// The field of log lines about the request.
log::Field TraceField(const HttpRequest& request);
// For a call that belongs to the stage. Empty unless the trace is sampled and the stage runs for
// the first time.
std::string TraceparentOf(const RequestTrace* trace, Stage stage);

// When the request begins, if requests are traced: when its head is judged, else with its handler.
void BeginTrace(HttpRequest& request);
// When it has ended: exports its spans if it is sampled or has failed. endpoint: null when none
// matches.
void EndTrace(const HttpRequest& request, const http::RequestSummary& summary,
              const Endpoint* endpoint);

// Measures a stage while it lives, the first time that it runs. trace may be null.
class StageTimer {
 public:
  StageTimer(RequestTrace* trace, Stage stage);
  ~StageTimer();
  StageTimer(const StageTimer&) = delete;
  StageTimer& operator=(const StageTimer&) = delete;

 private:
  RequestTrace::Times* times_ = nullptr;  // null: nothing is measured
};

}  // namespace tollgate::gateway
