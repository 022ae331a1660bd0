// The metrics of the router. Thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "common/observability/metrics.h"
#include "services/inference_router/balancer/select_engine.h"
#include "services/inference_router/domain/spending.h"
#include "services/inference_router/run/engine_metrics.h"
#include "services/inference_router/run/genai_metrics.h"

namespace tollgate::inference_router {

class RouterMetrics {
 public:
  static constexpr int64_t kLongestAnswerUs = int64_t{3'600} * 1'000'000;

  // answer_us: the longest duration of an answer. Counters of removed engines are kept for this
  // time.
  explicit RouterMetrics(int64_t answer_us = kLongestAnswerUs);

  // Counts one choice of an engine.
  void CountChoice(ChoiceReason reason);
  void CountExtension(ExtendAnswer answer);
  // Counts an answer that was cut although credit was not lacking. reason: held or no_answer, a
  // literal.
  void CountCut(std::string_view reason);

  // Counts a request that qualified for a second engine. result: won, lost, failed, no_engine or
  // refused, a literal.
  void CountHedge(std::string_view result);

  // Counts an answer that was ended because it exceeded a limit (H75). limit: the limit's name, a
  // literal.
  void CountAnswerLimit(std::string_view limit);

  prometheus::Histogram& time_to_first_token;
  prometheus::Counter& whole_answers;
  prometheus::Gauge& running;
  prometheus::Counter& prompt_tokens;
  prometheus::Counter& completion_tokens;
  prometheus::Counter& retries;
  prometheus::Counter& retries_refused;
  // Outcomes of requests that had to wait.
  prometheus::Counter& queue_granted;
  prometheus::Counter& queue_timed_out;
  prometheus::Counter& queue_full;
  prometheus::Counter& queue_left;
  prometheus::Gauge& queue_waiting;
  prometheus::Histogram& queue_seconds;
  prometheus::Counter& usage_estimated;
  prometheus::Counter& usage_mismatches;
  prometheus::Counter& cut_by_credit;
  prometheus::Counter& holds_lost;
  prometheus::Counter& settled_through_outbox;
  prometheus::Counter& not_durable;
  prometheus::Counter& implausible_counts;
  prometheus::Counter& lease_admitted;
  prometheus::Counter& lease_refused;
  prometheus::Counter& leases_recalled;
  prometheus::Gauge& leases;
  prometheus::Gauge& outbox_depth;
  prometheus::Gauge& outbox_waiting;
  prometheus::Gauge& engines_available;
  prometheus::Gauge& engines_known;
  EngineMetrics engines;
  GenAiMetrics genai;

 private:
  // Indexed by ChoiceReason.
  std::array<prometheus::Counter*, kChoiceReasons> choices_{};
};

}  // namespace tollgate::inference_router
