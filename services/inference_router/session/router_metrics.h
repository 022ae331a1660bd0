// The metrics of the router. Thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "common/observability/metrics.h"
#include "services/inference_router/balancer/engine_load.h"
#include "services/inference_router/balancer/select_engine.h"
#include "services/inference_router/domain/spending.h"
#include "services/inference_router/session/genai_metrics.h"

namespace tollgate::inference_router {

class RouterMetrics {
 public:
  RouterMetrics();

  // Counts one choice of an engine.
  void CountChoice(ChoiceReason reason);
  // Counts one run on one engine. outcome: ok, cut_by_credit, client_gone, or the name of the
  // error's row.
  void CountEngineRequest(const std::string& engine_id, const std::string& outcome);

  // Of an answer that ended, reported with its charge.
  void CountEngineTokens(const std::string& engine_id, int64_t output_tokens);
  // An engine of the catalog as it is now. running and most: requests; most 0: no limit. work: of
  // this router's requests, in tokens (balancer/work_meter.h).
  void SetEngine(const std::string& engine_id, bool available, int64_t running, int64_t most,
                 int64_t work);
  // Its weight in thousandths as it counts now, less during a slow start.
  void SetEngineShare(const std::string& engine_id, int64_t share);
  // What its own metrics say of its load; not known, or not fresh: -1.
  void SetEngineLoad(const std::string& engine_id, const EngineLoad& load, int64_t now_us);
  // An engine that the catalog has dropped. A metric cannot be taken back: its state becomes -1.
  void DropEngine(const std::string& engine_id) {
    SetEngineState(engine_id, -1, 0, 0, 0);
    SetEngineShare(engine_id, 0);
    SetEngineLoad(engine_id, {}, 0);
  }

  void CountExtension(ExtendAnswer answer);
  // Counts an answer that ended before its time without a lack of credit. reason: held or
  // no_answer, a literal.
  void CountCut(std::string_view reason);

  // Counts an answer that was ended because it was above a bound (H75). limit: the bound's name, a
  // literal.
  void CountAnswerLimit(std::string_view limit);

  prometheus::Histogram& time_to_first_token;
  prometheus::Counter& whole_answers;
  prometheus::Gauge& running;
  prometheus::Counter& prompt_tokens;
  prometheus::Counter& completion_tokens;
  prometheus::Counter& retries;
  prometheus::Counter& retries_refused;
  // Of requests that had to wait: what became of them.
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
  prometheus::Gauge& outbox_depth;
  prometheus::Gauge& outbox_waiting;
  prometheus::Gauge& engines_available;
  prometheus::Gauge& engines_known;
  GenAiMetrics genai;

 private:
  void SetEngineState(const std::string& engine_id, double available, int64_t running, int64_t most,
                      int64_t work);

  // By ChoiceReason.
  std::array<prometheus::Counter*, kChoiceReasons> choices_{};
  std::mutex mutex_;
  std::unordered_map<std::string, prometheus::Counter*> engine_requests_;
  std::unordered_map<std::string, prometheus::Counter*> engine_tokens_;
};

}  // namespace tollgate::inference_router
