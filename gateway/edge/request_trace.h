// The trace data of a request: a fixed set of times and counts, written while it runs. Spans are
// built from it when the request has ended, and only if they are exported.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "common/error/error.h"
#include "common/http/server.h"
#include "common/observability/log.h"
#include "common/tracing/trace_context.h"
#include "gateway/edge/endpoint.h"
#include "gateway/edge/exchange.h"
#include "gateway/edge/request_failure.h"

namespace tollgate::gateway {

// The parts of a request that have a span of their own. kRoute lasts from the first call to a
// router to the end of the last router's answer, kStream from the first token to the last byte.
enum class Stage : uint8_t { kAuthenticate, kAdmit, kAuthorize, kRoute, kStream };
inline constexpr int kStages = 5;

struct RequestTrace {
  // Monotonic microseconds; 0: not reached yet.
  struct Times {
    int64_t begin_us = 0;
    int64_t end_us = 0;
  };

  tracing::TraceContext context;  // the request's own span
  tracing::SpanId parent = 0;     // the caller's span; 0: the trace begins here
  std::string tracestate;         // the caller's, to be passed on
  int64_t begin_us = 0;
  std::array<Times, kStages> stages{};

  // The fields below are set at the end of requests that generate.
  std::string_view operation;  // empty: the request does not generate
  std::string model;           // an id of the catalog, or "unlisted"; empty: none was found
  std::string workspace_id;
  std::string_view finish_reason;
  bool streamed = false;
  int64_t max_tokens = 0;
  int64_t prompt_tokens = 0;
  int64_t completion_tokens = 0;
  // Routers and models that were tried after the first one.
  int64_t further_tries = 0;

  Times& of(Stage stage) { return stages[static_cast<size_t>(stage)]; }
  const Times& of(Stage stage) const { return stages[static_cast<size_t>(stage)]; }
  tracing::TraceContext ContextOf(Stage stage) const {
    return context.Child(tracing::ChildSpanId(context.span_id, static_cast<int>(stage)));
  }
};

// What the gateway keeps with a request that is traced or has failed (HttpRequest::attachment).
struct RequestNotes {
  std::optional<RequestTrace> trace;
  RequestFailure failure;
};
RequestNotes& NotesOf(HttpRequest& request);

// Null: requests are not traced, or this one is not.
inline RequestTrace* TraceOf(const HttpRequest& request) {
  auto* notes = static_cast<RequestNotes*>(request.attachment.get());
  return notes != nullptr && notes->trace ? &*notes->trace : nullptr;
}
// The field of log lines about the request.
log::Field TraceField(const HttpRequest& request);
// The traceparent for a call that belongs to the stage. Empty unless the trace is sampled and the
// stage runs for the first time.
std::string TraceparentOf(const RequestTrace* trace, Stage stage);

// Call when the request begins: when its head is judged, otherwise before its handler. Does nothing
// when tracing is off.
void BeginTrace(HttpRequest& request);
// Call when the request has ended. Exports its spans if it is sampled or has failed. endpoint: null
// when none matches.
void EndTrace(const HttpRequest& request, const http::RequestSummary& summary,
              const Endpoint* endpoint);

// Measures the first run of a stage, from construction to destruction. trace may be null.
class StageTimer {
 public:
  StageTimer(RequestTrace* trace, Stage stage);
  ~StageTimer();
  StageTimer(const StageTimer&) = delete;
  StageTimer& operator=(const StageTimer&) = delete;

 private:
  RequestTrace::Times* times_ = nullptr;  // null: not measuring
};

}  // namespace tollgate::gateway
