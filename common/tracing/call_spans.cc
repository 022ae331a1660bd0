#include "common/tracing/call_spans.h"

#include <utility>

#include "common/base/clock.h"

namespace tollgate::tracing {

CallSpansPtr BeginCall(CallName name, const std::vector<std::string_view>& traceparents,
                       int items) {
  std::vector<TraceContext> callers;
  for (const std::string_view text : traceparents) {
    const auto caller = ParseTraceparent(text);
    if (caller && caller->sampled) callers.push_back(*caller);
  }
  if (callers.empty()) return nullptr;
  return std::make_shared<const CallSpans>(name, std::move(callers), items,
                                           SystemClock::Get().MonotonicUs());
}

void CallSpans::End(std::string_view error) const {
  const int64_t now_us = SystemClock::Get().MonotonicUs();
  const size_t slash = name_.method.find('/');
  std::vector<Span> spans;
  spans.reserve(callers_.size());
  for (const TraceContext& caller : callers_) {
    Span span;
    span.scope = name_.scope;
    span.name = name_.method;
    span.kind = SpanKind::kServer;
    span.context = caller.Child(NewSpanId());
    span.parent = caller.span_id;
    span.start_us = start_us_;
    span.end_us = now_us;
    span.attributes = {{"rpc.system", std::string("grpc")},
                       {"rpc.service", std::string(name_.method.substr(0, slash))},
                       {"rpc.method", std::string(name_.method.substr(slash + 1))},
                       {"tollgate.batch.items", int64_t{items_}}};
    if (!error.empty()) {
      span.failed = true;
      span.attributes.emplace_back("error.type", std::string(error));
    }
    spans.push_back(std::move(span));
  }
  Record(std::move(spans));
}

}  // namespace tollgate::tracing
