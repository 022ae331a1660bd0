#include "gateway/edge/request_trace.h"

#include <optional>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/tracing/tracer.h"
#include "common/tracing/tracestate.h"

namespace tollgate::gateway {

namespace {

using tracing::Failure;
using tracing::Span;
using tracing::SpanKind;

constexpr std::string_view kScope = "tollgate.gateway";

struct StageName {
  const char* name;
  const char* peer;  // the service that it waits for; null: none
};
constexpr StageName kStageNames[kStages] = {{"authenticate", nullptr},
                                            {"admit", "tollgate-ratelimit"},
                                            {"authorize", "tollgate-billing"},
                                            {"route", "tollgate-inference-router"},
                                            {"stream", nullptr}};

RequestTrace MakeTrace(const HttpRequest& request, int64_t begin_us) {
  RequestTrace trace;
  std::optional<tracing::TraceContext> caller;
  std::vector<std::string_view> states;
  int parents = 0;
  for (const auto& [name, value] : request.headers) {
    if (name == "traceparent" && ++parents == 1) caller = tracing::ParseTraceparent(value);
    if (name == "tracestate") states.push_back(value);
  }
  if (parents > 1) caller.reset();
  std::optional<bool> flag;
  if (caller) {
    trace.context.trace_id = caller->trace_id;
    trace.parent = caller->span_id;
    flag = caller->sampled;
    if (!states.empty()) trace.tracestate = tracing::CleanTracestate(states);
  } else {
    // The trace id is the request id, so that one can be found from the other.
    trace.context.trace_id = (request.id.empty() ? Id::New() : request.id).bytes();
  }
  trace.context.span_id = tracing::NewSpanId();
  trace.context.sampled = tracing::IsSampledByHead(trace.context.trace_id, flag);
  trace.begin_us = begin_us;
  return trace;
}

Failure KindOf(const RequestFailure& failure, int status) {
  if (status >= 500) return Failure::kBroken;
  if (status >= 400) return Failure::kRefused;
  return failure.error != nullptr ? Failure::kBroken : Failure::kNone;
}

std::string ErrorTypeOf(const RequestFailure& failure, int status) {
  return failure.error != nullptr ? std::string(failure.error->name) : std::to_string(status);
}

// Whether the last stage that ran caused the error. Reading the body and finding the model follow
// authentication and have no span of their own.
bool IsEndOf(const ErrorRow& error, const RequestTrace& trace) {
  return trace.of(Stage::kAdmit).begin_us != 0 || error.id == ErrorId::kInvalidApiKey ||
         error.id == ErrorId::kVirtualKeyBlocked || error.id == ErrorId::kServiceUnavailable;
}

void AddGeneration(const RequestTrace& trace, Span& span) {
  auto& attributes = span.attributes;
  if (!trace.workspace_id.empty()) {
    attributes.emplace_back("tollgate.workspace.id", trace.workspace_id);
  }
  if (!trace.model.empty()) attributes.emplace_back("gen_ai.request.model", trace.model);
  if (trace.operation.empty()) return;
  attributes.emplace_back("gen_ai.operation.name", std::string(trace.operation));
  attributes.emplace_back("gen_ai.provider.name", std::string("tollgate"));
  attributes.emplace_back("tollgate.streamed", trace.streamed);
  if (trace.max_tokens > 0) attributes.emplace_back("gen_ai.request.max_tokens", trace.max_tokens);
  if (trace.further_tries > 0) {
    attributes.emplace_back("tollgate.further_tries", trace.further_tries);
  }
  if (trace.prompt_tokens > 0 || trace.completion_tokens > 0) {
    attributes.emplace_back("gen_ai.usage.input_tokens", trace.prompt_tokens);
    attributes.emplace_back("gen_ai.usage.output_tokens", trace.completion_tokens);
  }
  if (!trace.finish_reason.empty()) {
    attributes.emplace_back("gen_ai.response.finish_reasons",
                            std::vector<std::string>{std::string(trace.finish_reason)});
  }
}

Span MakeServerSpan(const RequestTrace& trace, const HttpRequest& request,
                    const http::RequestSummary& summary, const Endpoint* endpoint, int64_t end_us) {
  Span span;
  span.scope = kScope;
  span.kind = SpanKind::kServer;
  span.context = trace.context;
  span.parent = trace.parent;
  span.start_us = trace.begin_us;
  span.end_us = end_us;
  // An unmatched path and its method may contain anything, even a key.
  const std::string method = endpoint != nullptr ? request.method : "_OTHER";
  span.name = endpoint != nullptr ? method + " " + endpoint->path : "HTTP";
  span.attributes = {{"http.request.method", method},
                     {"http.response.status_code", int64_t{summary.status}},
                     {"http.request.body.size", static_cast<int64_t>(summary.body_bytes_in)},
                     {"http.response.body.size", static_cast<int64_t>(summary.body_bytes_out)},
                     {"tollgate.request.id", request.id.ToHex()}};
  if (endpoint != nullptr) span.attributes.emplace_back("http.route", endpoint->path);
  if (summary.client_disconnected) span.attributes.emplace_back("tollgate.client_gone", true);
  const RequestFailure& failure = FailureOf(request);
  const Failure kind = KindOf(failure, summary.status);
  span.failed = kind == Failure::kBroken;
  if (kind != Failure::kNone) {
    span.attributes.emplace_back("error.type", ErrorTypeOf(failure, summary.status));
  }
  if (failure.reason != Reason::kNone) {
    span.attributes.emplace_back("tollgate.reason", std::string(NameOf(failure.reason)));
  }
  AddGeneration(trace, span);
  const int64_t first_token_us = trace.of(Stage::kStream).begin_us;
  if (first_token_us != 0) span.events.push_back({"first token", first_token_us});
  return span;
}

Span MakeStageSpan(const RequestTrace& trace, Stage stage, int64_t end_us) {
  const StageName& name = kStageNames[static_cast<size_t>(stage)];
  const RequestTrace::Times& times = trace.of(stage);
  Span span;
  span.scope = kScope;
  span.name = name.name;
  span.kind = name.peer != nullptr ? SpanKind::kClient : SpanKind::kInternal;
  span.context = trace.ContextOf(stage);
  span.parent = trace.context.span_id;
  span.start_us = times.begin_us;
  // A stage that was cut off by the client's disconnect ends with the request.
  span.end_us = times.end_us != 0 ? times.end_us : end_us;
  if (name.peer != nullptr) span.attributes.emplace_back("peer.service", std::string(name.peer));
  return span;
}

}  // namespace

RequestNotes& NotesOf(HttpRequest& request) {
  if (!request.attachment) request.attachment = std::make_shared<RequestNotes>();
  return *static_cast<RequestNotes*>(request.attachment.get());
}

log::Field TraceField(const HttpRequest& request) {
  const RequestTrace* trace = TraceOf(request);
  if (trace == nullptr) return {"", ""};
  return {"trace_id", trace->context.TraceIdHex()};
}

std::string TraceparentOf(const RequestTrace* trace, Stage stage) {
  if (trace == nullptr || !trace->context.sampled) return "";
  const RequestTrace::Times& times = trace->of(stage);
  if (times.begin_us == 0 || times.end_us != 0) return "";
  return tracing::FormatTraceparent(trace->ContextOf(stage));
}

void BeginTrace(HttpRequest& request) {
  if (!tracing::Enabled() || TraceOf(request) != nullptr) return;
  NotesOf(request).trace = MakeTrace(request, MonotonicNowUs());
}

void EndTrace(const HttpRequest& request, const http::RequestSummary& summary,
              const Endpoint* endpoint) {
  if (!tracing::Enabled()) return;
  // A request that is refused by its head never reaches its handler, but it has a route. Bytes that
  // are not a valid request have none, and are not traced.
  std::optional<RequestTrace> refused;
  const RequestTrace* trace = TraceOf(request);
  if (trace == nullptr) {
    if (endpoint == nullptr || endpoint->is_probe) return;
    trace = &refused.emplace(MakeTrace(request, MonotonicNowUs() - summary.duration_us));
  }
  const RequestFailure& failure = FailureOf(request);
  if (!tracing::IsExported(trace->context, KindOf(failure, summary.status))) return;
  const int64_t end_us = MonotonicNowUs();
  std::vector<Span> spans;
  spans.reserve(1 + kStages);
  spans.push_back(MakeServerSpan(*trace, request, summary, endpoint, end_us));
  Span* last = nullptr;
  for (int i = 0; i < kStages; ++i) {
    const auto stage = static_cast<Stage>(i);
    if (trace->of(stage).begin_us == 0) continue;
    last = &spans.emplace_back(MakeStageSpan(*trace, stage, end_us));
  }
  if (last != nullptr && failure.error != nullptr && IsEndOf(*failure.error, *trace)) {
    last->failed = spans.front().failed;
    last->attributes.emplace_back("error.type", ErrorTypeOf(failure, summary.status));
  }
  tracing::Record(std::move(spans));
}

StageTimer::StageTimer(RequestTrace* trace, Stage stage) {
  if (trace == nullptr || trace->of(stage).begin_us != 0) return;
  times_ = &trace->of(stage);
  times_->begin_us = MonotonicNowUs();
}

StageTimer::~StageTimer() {
  if (times_ != nullptr) times_->end_us = MonotonicNowUs();
}

}  // namespace tollgate::gateway
