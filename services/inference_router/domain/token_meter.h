// Counts one request's tokens while they arrive, from the engine's reports where it gives them and
// from our own count where it does not, and decides at the end what is charged. spec: decisions
// 8, 9.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "services/inference_router/domain/engine_usage.h"
#include "services/inference_router/domain/own_count.h"
#include "tollgate/common/v1/usage.pb.h"
#include "tollgate/inference/v1/inference.pb.h"

namespace tollgate::inference_router {

struct Measured {
  common::v1::Usage usage;
  // The engine gave no usable count: (part of) the numbers are our own.
  bool estimated = false;
  // The engine's numbers failed the sanity check; an alert metric counts these.
  bool mismatch = false;
};

class TokenMeter {
 public:
  struct Options {
    int choices = 1;
    // 0 = unknown: the engine's count is taken as it is.
    int64_t prompt_tokens_bound = 0;
    // The likeliest size; 0 = a quarter of the bound.
    int64_t prompt_tokens_estimate = 0;
    // Output that is paid for but never shown (best_of), at most.
    int64_t unseen_tokens = 0;
    // The engine puts usage on every chunk, each time for that chunk's choice alone (vLLM, SGLang).
    bool usage_per_choice = false;
    // Such a report tells the prompt of that choice, too, which may be one of several.
    bool prompt_per_choice = false;
  };
  explicit TokenMeter(const Options& options);

  // One chunk: first its deltas, then the usage it carried.
  void OnDelta(const inference::v1::Delta& delta);
  void OnUsage(const EngineUsage& usage);

  // Best knowledge of the completion so far: last report plus one for each delta since. Grows.
  int64_t completion_tokens() const { return completion_; }
  // The last sane report's; the bound when only what is above it came; 0 before.
  int64_t prompt_tokens() const;
  // The prompt's size as far as the bound tells, for an engine that never counts it.
  int64_t prompt_tokens_estimate() const;
  bool anything_produced() const { return own_.bytes() > 0; }
  const std::optional<EngineUsage>& last_report() const { return last_; }

  Measured Measure() const;

 private:
  struct PerChoice {
    int64_t reported = 0;
    int64_t since = 0;  // deltas after the last report
  };
  int64_t Sum() const;
  int64_t MostPromptTokens() const;
  void OnPrompt(int64_t reported);
  // Not more than 2 % above what can have been produced (decisions 9).
  bool Believable(int64_t tokens) const;

  Options options_;
  OwnCount own_;
  std::vector<PerChoice> choices_;
  // A report for all choices together, and the deltas after it.
  std::optional<int64_t> total_;
  int64_t since_total_ = 0;
  std::optional<EngineUsage> last_;
  bool reported_ = false;  // a good report has come
  bool absurd_ = false;    // the last report was not believed
  int64_t prompt_ = 0;     // of the last report whose prompt was believed
  bool prompt_absurd_ = false;
  int64_t completion_ = 0;
};

}  // namespace tollgate::inference_router
