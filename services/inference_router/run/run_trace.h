// The trace data of a request: a fixed set of times. Spans are built from it when it has
// ended, and only if they are exported.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/error/error.h"
#include "common/tracing/trace_context.h"
#include "tollgate/catalog/v1/catalog.pb.h"
#include "tollgate/common/v1/usage.pb.h"
#include "tollgate/inference/v1/inference.pb.h"

namespace tollgate::inference_router {

class RunTrace {
 public:
  // Returns nullopt when this process does not trace or the gateway has sent no trace.
  static std::optional<RunTrace> Begin(const inference::v1::GenerateRequest& request,
                                       int64_t now_us);

  // Call when an engine is asked. engine_id must outlive the trace. reason: why the engine was
  // chosen, a literal.
  void BeginAttempt(std::string_view engine_id, catalog::v1::EngineKind kind,
                    std::string_view reason, int64_t now_us);
  // error: why the attempt failed; null: it did not.
  void EndAttempt(const ErrorRow* error, int64_t first_output_us, int64_t now_us);
  // The traceparent for the current engine.
  std::string AttemptTraceparent() const;

  void BeginSettle(int64_t now_us) { settle_begin_us_ = now_us; }
  void EndSettle(int64_t now_us) { settle_end_us_ = now_us; }
  // The traceparent for the ledger. Empty when the trace is not sampled.
  std::string SettleTraceparent() const;

  // Sets the charged usage.
  void SetUsage(const common::v1::Usage& usage);

  struct Outcome {
    const ErrorRow* error = nullptr;  // why the request failed; null: it did not
    bool client_gone = false;
    bool cut = false;        // ended early because its hold was used up
    std::string_view model;  // an id of the catalog; empty: the caller's own text
  };
  // Call when the request has ended. Exports its spans if it is sampled or has failed.
  void End(const Outcome& outcome, int64_t now_us) const;

  // The trace id for log lines.
  std::string TraceIdHex() const { return context_.TraceIdHex(); }

 private:
  struct Attempt {
    std::string_view engine_id;
    catalog::v1::EngineKind kind = catalog::v1::ENGINE_KIND_UNSPECIFIED;
    std::string_view reason;
    int64_t begin_us = 0;
    int64_t end_us = 0;  // 0: still running
    int64_t first_output_us = 0;
    const ErrorRow* error = nullptr;
  };
  // Further attempts are not recorded.
  static constexpr int kMostAttempts = 4;
  // Numbers of child spans: the attempts from 0 on, then the settlement.
  static constexpr int kSettle = kMostAttempts;

  RunTrace(const tracing::TraceContext& gateway, inference::v1::RequestKind kind, int64_t now_us)
      : context_(gateway.Child(tracing::NewSpanId())),
        parent_(gateway.span_id),
        kind_(kind),
        begin_us_(now_us) {}
  Attempt* current() { return attempts_made_ > 0 ? &attempts_[attempts_made_ - 1] : nullptr; }

  tracing::TraceContext context_;
  tracing::SpanId parent_;
  inference::v1::RequestKind kind_;
  int64_t begin_us_;
  std::array<Attempt, kMostAttempts> attempts_{};
  int attempts_made_ = 0;
  int64_t settle_begin_us_ = 0;
  int64_t settle_end_us_ = 0;
  int64_t prompt_tokens_ = 0;
  int64_t completion_tokens_ = 0;
};

}  // namespace tollgate::inference_router
