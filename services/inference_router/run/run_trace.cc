#include "services/inference_router/run/run_trace.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/engines/kinds.h"
#include "common/tracing/tracer.h"
#include "services/inference_router/run/genai_metrics.h"

namespace tollgate::inference_router {

using tracing::Failure;
using tracing::Span;
using tracing::SpanKind;

namespace {

constexpr std::string_view kScope = "tollgate.inference_router";
constexpr std::string_view kUnlisted = "unlisted";

Failure FailureOf(const ErrorRow* error) {
  if (error == nullptr) return Failure::kNone;
  return error->http_status >= 500 ? Failure::kBroken : Failure::kRefused;
}

void AddError(const ErrorRow* error, Span& span) {
  if (error == nullptr) return;
  span.failed = FailureOf(error) == Failure::kBroken;
  span.attributes.emplace_back("error.type", std::string(error->name));
}

}  // namespace

std::optional<RunTrace> RunTrace::Begin(const inference::v1::GenerateRequest& request,
                                        int64_t now_us) {
  if (!tracing::Enabled()) return std::nullopt;
  const auto gateway = tracing::ParseTraceparent(request.traceparent());
  if (!gateway) return std::nullopt;
  return RunTrace(*gateway, request.kind(), now_us);
}

void RunTrace::BeginAttempt(std::string_view engine_id, catalog::v1::EngineKind kind,
                            std::string_view reason, int64_t now_us) {
  attempts_made_ = std::min(attempts_made_ + 1, kMostAttempts);
  *current() = {.engine_id = engine_id, .kind = kind, .reason = reason, .begin_us = now_us};
}

void RunTrace::EndAttempt(const ErrorRow* error, int64_t first_output_us, int64_t now_us) {
  current()->error = error;
  current()->first_output_us = first_output_us;
  current()->end_us = now_us;
}

std::string RunTrace::AttemptTraceparent() const {
  return tracing::FormatTraceparent(
      context_.Child(tracing::ChildSpanId(context_.span_id, std::max(attempts_made_ - 1, 0))));
}

std::string RunTrace::SettleTraceparent() const {
  if (!context_.sampled) return "";
  return tracing::FormatTraceparent(
      context_.Child(tracing::ChildSpanId(context_.span_id, kSettle)));
}

void RunTrace::SetUsage(const common::v1::Usage& usage) {
  prompt_tokens_ = usage.prompt_tokens();
  completion_tokens_ = usage.completion_tokens();
}

void RunTrace::End(const Outcome& outcome, int64_t now_us) const {
  if (!tracing::IsExported(context_, FailureOf(outcome.error))) return;
  const std::string model(outcome.model.empty() ? kUnlisted : outcome.model);
  const std::string operation(OperationOf(kind_));
  std::vector<Span> spans(1);
  spans.reserve(static_cast<size_t>(attempts_made_) + 2);
  Span& run = spans.front();
  run.scope = kScope;
  run.name = "tollgate.inference.v1.InferenceService/Generate";
  run.kind = SpanKind::kServer;
  run.context = context_;
  run.parent = parent_;
  run.start_us = begin_us_;
  run.end_us = now_us;
  run.attributes = {{"gen_ai.operation.name", operation},
                    {"gen_ai.request.model", model},
                    {"gen_ai.usage.input_tokens", prompt_tokens_},
                    {"gen_ai.usage.output_tokens", completion_tokens_},
                    {"tollgate.engine.attempts", int64_t{attempts_made_}}};
  if (outcome.client_gone) run.attributes.emplace_back("tollgate.client_gone", true);
  if (outcome.cut) run.attributes.emplace_back("tollgate.cut", true);
  AddError(outcome.error, run);
  for (int i = 0; i < attempts_made_; ++i) {
    const Attempt& attempt = attempts_[static_cast<size_t>(i)];
    Span& span = spans.emplace_back();
    span.scope = kScope;
    span.name = operation + " " + model;
    span.kind = SpanKind::kClient;
    span.context = context_.Child(tracing::ChildSpanId(context_.span_id, i));
    span.parent = context_.span_id;
    span.start_us = attempt.begin_us;
    span.end_us = attempt.end_us != 0 ? attempt.end_us : now_us;
    span.attributes = {{"gen_ai.operation.name", operation},
                       {"gen_ai.provider.name", std::string(engines::Of(attempt.kind).name)},
                       {"gen_ai.request.model", model},
                       {"tollgate.engine.id", std::string(attempt.engine_id)},
                       {"tollgate.engine.reason", std::string(attempt.reason)}};
    if (attempt.first_output_us != 0) {
      span.events.push_back({"first token", attempt.first_output_us});
    }
    if (i + 1 == attempts_made_) {
      span.attributes.emplace_back("gen_ai.usage.input_tokens", prompt_tokens_);
      span.attributes.emplace_back("gen_ai.usage.output_tokens", completion_tokens_);
    }
    AddError(attempt.error, span);
  }
  if (settle_begin_us_ != 0) {
    Span& span = spans.emplace_back();
    span.scope = kScope;
    span.name = "settle";
    span.kind = SpanKind::kClient;
    span.context = context_.Child(tracing::ChildSpanId(context_.span_id, kSettle));
    span.parent = context_.span_id;
    span.start_us = settle_begin_us_;
    span.end_us = settle_end_us_ != 0 ? settle_end_us_ : now_us;
    span.attributes = {{"peer.service", std::string("tollgate-billing")}};
  }
  tracing::Record(std::move(spans));
}

}  // namespace tollgate::inference_router
