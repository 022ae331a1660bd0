// The request's data for its trace, and the trace context that is passed on to the router.
#include <algorithm>

#include "common/tracing/tracestate.h"
#include "gateway/pipeline/answer/trace_request.h"
#include "gateway/pipeline/request_context.h"

namespace tollgate::gateway {

namespace {

// Names of OpenTelemetry's conventions.
std::string_view OperationOf(inference::v1::RequestKind kind) {
  switch (kind) {
    case inference::v1::REQUEST_KIND_COMPLETION:
      return "text_completion";
    case inference::v1::REQUEST_KIND_EMBEDDING:
      return "embeddings";
    default:
      return "chat";
  }
}

}  // namespace

void DescribeTrace(const RequestContext& context) {
  RequestTrace& trace = *context.trace;
  const bool failed = FailureOf(context.exchange.request()).error != nullptr;
  if (!trace.context.sampled && !failed) return;
  if (context.key) trace.workspace_id = context.key->workspace_id();
  // The name of a model outside the catalog is the caller's text, so it is not exported.
  if (context.model != nullptr) {
    trace.model = context.unlisted ? "unlisted" : context.model->id();
  }
  if (trace.of(Stage::kAuthorize).begin_us == 0) return;  // counting generates nothing
  trace.operation = OperationOf(context.canonical.kind);
  trace.streamed = context.canonical.stream;
  trace.max_tokens = std::max<int64_t>(context.canonical.max_tokens.value_or(0), 0);
  trace.further_tries = context.attempt;
}

void BeginRoute(RequestContext& context) {
  if (context.trace == nullptr) return;
  context.trace->of(Stage::kRoute).begin_us = context.worker.clock.MonotonicUs();
}

void PassTraceOn(const RequestContext& context, inference::v1::GenerateRequest& request) {
  if (context.trace != nullptr) {
    request.set_traceparent(tracing::FormatTraceparent(context.trace->ContextOf(Stage::kRoute)));
    request.set_tracestate(context.trace->tracestate);
    return;
  }
  const HttpRequest& http = context.exchange.request();
  const std::string_view sent = http.header("traceparent");
  // For a later version only the known fields are passed on.
  const auto caller = tracing::ParseTraceparent(sent);
  if (!caller) return;
  request.set_traceparent(sent.starts_with("00") ? std::string(sent)
                                                 : tracing::FormatTraceparent(*caller));
  std::vector<std::string_view> states;
  for (const auto& [name, value] : http.headers) {
    if (name == "tracestate") states.push_back(value);
  }
  request.set_tracestate(tracing::CleanTracestate(states));
}

void RecordUsage(RequestContext& context, const inference::v1::End& end) {
  if (context.trace == nullptr) return;
  context.trace->of(Stage::kRoute).end_us = context.worker.clock.MonotonicUs();
  context.trace->prompt_tokens = end.usage().prompt_tokens();
  context.trace->completion_tokens = end.usage().completion_tokens();
}

void RecordFinish(RequestContext& context, inference::v1::FinishReason reason) {
  if (context.trace == nullptr) return;
  switch (reason) {
    case inference::v1::FINISH_REASON_STOP:
      context.trace->finish_reason = "stop";
      break;
    case inference::v1::FINISH_REASON_LENGTH:
      context.trace->finish_reason = "length";
      break;
    case inference::v1::FINISH_REASON_TOOL_CALLS:
      context.trace->finish_reason = "tool_calls";
      break;
    case inference::v1::FINISH_REASON_CONTENT_FILTER:
      context.trace->finish_reason = "content_filter";
      break;
    default:
      break;
  }
}

}  // namespace tollgate::gateway
