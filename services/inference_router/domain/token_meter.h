// Counts the tokens of one run while they arrive, from the engine's reports if it sends any,
// otherwise from the router's own count. Determines at the end what is charged. See decisions 8, 9.
#pragma once

#include <algorithm>
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
  // The engine reported no usable counts, so at least one number is the router's own.
  bool estimated = false;
  // The engine's report was rejected, or is believed but above what was asked for or unlikely for
  // the size of the text (a metric for alerts).
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
    // The most tokens that are charged for all choices together (decision 72); 0 = unknown.
    int64_t most_tokens = 0;
    // Upper bound of the output that is charged but never sent to the client (best_of).
    int64_t unseen_tokens = 0;
    // The engine reports usage on every chunk, only for the choice of that chunk (vLLM, SGLang), or
    // for each choice at its end (llama.cpp).
    bool usage_per_choice = false;
    // The prompt count of such a report belongs to one choice, and choices have different prompts.
    bool prompt_per_choice = false;
    // Number of consecutive choices that share a prompt, for an engine without a report that covers
    // all choices (llama.cpp): the counts of the prompts are added up. 0: the last report covers
    // everything.
    int choices_per_prompt = 0;
  };
  explicit TokenMeter(const Options& options);

  // Call for each chunk: first with its deltas, then with its usage.
  void OnDelta(const inference::v1::Delta& delta);
  void OnUsage(const EngineUsage& usage);
  // Whether a report of completion tokens was believed.
  bool reported() const { return reported_; }
  // Counts a whole answer without a believed report by its size. OnDelta has counted it as one
  // token before.
  void CountBySize(const inference::v1::Delta& delta);

  // Tokens of a choice so far: its last report plus one per delta since then.
  int64_t tokens_of(int choice) const;
  // The tokens of all choices, also above what was asked for, without choices that are never sent.
  int64_t seen_tokens() const { return std::max<int64_t>(Sum() - options_.unseen_tokens, 0); }
  // Completion tokens so far: the last report plus one per delta since then, at most what was asked
  // for. Never decreases.
  int64_t completion_tokens() const { return completion_; }
  // The reasoning part of the completion tokens, as reported by the engine, else by the router's
  // own count.
  int64_t reasoning_tokens() const;
  // From the last plausible report. If only larger counts were reported, the bound. Else 0.
  int64_t prompt_tokens() const;
  // Used for an engine that does not report a prompt count.
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
  // The sum, at most what was asked for.
  int64_t Charged() const;
  void AddTokens(size_t choice, int64_t tokens, int64_t reasoning);
  // Records how many output tokens since the last report were reasoning.
  void AttributeReport();
  int64_t MaxPromptTokens() const;
  // Replaces the prompt counts of last_, which belong to one prompt, by the sums over all prompts.
  void AddUpPrompts(size_t choice);
  void OnPrompt(int64_t reported);
  // At most 2 % above the upper bound of the output (decision 9).
  bool IsPlausible(int64_t tokens) const;
  // Whether a long text has unusually few or many bytes per reported token.
  bool IsUnlikely(int64_t tokens) const;

  Options options_;
  OwnCount own_;
  std::vector<PerChoice> choices_;
  // The last report for all choices together, and the number of deltas since then.
  std::optional<int64_t> total_;
  int64_t since_total_ = 0;
  std::optional<EngineUsage> last_;
  bool reported_ = false;     // a plausible report was received
  bool implausible_ = false;  // the last report was rejected
  // With choices_per_prompt: the last report of each prompt.
  std::vector<std::optional<EngineUsage>> prompts_;
  int64_t prompt_ = 0;  // from the last report with a plausible prompt count
  bool prompt_implausible_ = false;
  int64_t completion_ = 0;
  // Reasoning tokens up to the last report, by their share of the received bytes, and the counts at
  // that report.
  int64_t reasoning_ = 0;
  struct ReportedAt {
    int64_t completion = 0;
    int64_t bytes = 0;
    int64_t reasoning_bytes = 0;
  } reported_at_;
  int64_t reasoning_since_ = 0;  // deltas with reasoning since then
};

}  // namespace tollgate::inference_router
