// Counts the tokens of one run while they arrive: from the engine's reports if it sends any, else
// from the router's own count. Decides at the end what is charged. See decisions 8, 9.
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
  // The engine reported no usable counts: at least one number is the router's own.
  bool estimated = false;
  // The engine's report failed the plausibility check (a metric for alerts).
  bool mismatch = false;
};

class TokenMeter {
 public:
  struct Options {
    int choices = 1;
    // 0 = unknown: the engine's count is not checked.
    int64_t prompt_tokens_bound = 0;
    // 0 = a quarter of the bound.
    int64_t prompt_tokens_estimate = 0;
    // Upper bound of the output that is charged but never sent to the client (best_of).
    int64_t unseen_tokens = 0;
    // The engine reports usage on every chunk, for the choice of that chunk only (vLLM, SGLang), or
    // for each choice at its end (llama.cpp).
    bool usage_per_choice = false;
    // The prompt count of such a report is that of one choice, and prompts differ between choices.
    bool prompt_per_choice = false;
    // No report covers all choices: the counts of their prompts are added up, one prompt for each
    // so many choices in a row (llama.cpp). 0: the last report is of everything.
    int choices_per_prompt = 0;
  };
  explicit TokenMeter(const Options& options);

  // For each chunk: first its deltas, then its usage.
  void OnDelta(const inference::v1::Delta& delta);
  // A delta that is all that an engine says, without counts: its tokens follow from its size.
  void OnUncounted(const inference::v1::Delta& delta);
  void OnUsage(const EngineUsage& usage);
  // Whether the last report of completion tokens was rejected.
  bool unbelieved() const { return implausible_; }
  // After a rejected report: a delta that is all that an engine says, which OnDelta has counted as
  // one token. Its tokens follow from its size.
  void OnUnbelieved(const inference::v1::Delta& delta);

  // Completion tokens so far: the last report plus one per delta since. Never decreases.
  int64_t completion_tokens() const { return completion_; }
  // Those of them that are reasoning: as the engine reports them, else by the router's own count.
  int64_t reasoning_tokens() const;
  // From the last plausible report; the bound if only larger counts were reported; else 0.
  int64_t prompt_tokens() const;
  // For an engine that does not report a prompt count.
  int64_t prompt_tokens_estimate() const;
  bool has_output() const { return own_.bytes() > 0; }
  const std::optional<EngineUsage>& last_report() const { return last_; }

  Measured Measure() const;

 private:
  struct PerChoice {
    int64_t reported = 0;
    int64_t since = 0;  // deltas since the last report
  };
  int64_t Sum() const;
  void AddTokens(size_t choice, int64_t tokens, int64_t reasoning);
  // By its bytes, less what was counted of it.
  void AddBySize(const inference::v1::Delta& delta, int64_t counted);
  // Of the output tokens since the last report, those of the reasoning are recorded.
  void AttributeReport();
  int64_t MaxPromptTokens() const;
  // Turns what last_ says of one prompt into what is known of all.
  void AddUpPrompts(size_t choice);
  void OnPrompt(int64_t reported);
  // At most 2 % above the upper bound of the output (decision 9).
  bool IsPlausible(int64_t tokens) const;

  Options options_;
  OwnCount own_;
  std::vector<PerChoice> choices_;
  // The last report for all choices together, and the deltas since.
  std::optional<int64_t> total_;
  int64_t since_total_ = 0;
  std::optional<EngineUsage> last_;
  bool reported_ = false;     // a plausible report was received
  bool implausible_ = false;  // the last report was rejected
  // With choices_per_prompt: of each prompt that was reported.
  std::vector<std::optional<EngineUsage>> prompts_;
  int64_t prompt_ = 0;  // from the last report with a plausible prompt count
  bool prompt_implausible_ = false;
  int64_t completion_ = 0;
  // Reasoning tokens up to the last report, by the share of the bytes that came with it, and where
  // that report was.
  int64_t reasoning_ = 0;
  struct ReportedAt {
    int64_t completion = 0;
    int64_t bytes = 0;
    int64_t reasoning_bytes = 0;
  } reported_at_;
  int64_t reasoning_since_ = 0;  // deltas with reasoning since
};

}  // namespace tollgate::inference_router
