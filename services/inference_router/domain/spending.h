// How far the held money goes, and when to ask for more. Pure: time is an argument.
// spec: decisions 1-4, reliability.md 1.4.
#pragma once

#include <cstdint>

#include "common/money/money.h"

namespace tollgate::inference_router {

class Spending {
 public:
  struct Options {
    Rates rates;
    int64_t authorized_nano_usd = 0;
    int64_t slice_nano_usd = 0;
    int64_t prompt_tokens_bound = 0;
    // Most output the request can make over all choices; 0 = no limit known.
    int64_t max_output_tokens = 0;
  };
  explicit Spending(const Options& options);

  // The engine's own prompt count replaces the bound.
  void SetPromptTokens(int64_t tokens);

  // Output tokens that the hold pays for.
  int64_t affordable() const { return affordable_; }
  int64_t authorized_nano_usd() const { return options_.authorized_nano_usd; }

  // True when less than half a slice is left, more could be needed, no request for more is on its
  // way, and the last refusal is not fresh.
  bool WantsExtension(int64_t output_tokens, int64_t now_us) const;
  // The new total to ask for.
  int64_t NextTotal(int64_t output_tokens) const;
  void OnAsked() { asking_ = true; }
  // The ledger's answer: the hold's total now.
  void OnAnswer(int64_t authorized_nano_usd, int64_t now_us);
  // No answer came; what was asked may or may not have been granted.
  void OnNoAnswer(int64_t now_us);
  bool asking() const { return asking_; }
  // A refusal (or a dead ledger) is so fresh that asking again makes no sense yet.
  bool RefusedRecently(int64_t now_us) const;

  // Exact price of this usage, as it is charged at most.
  int64_t ChargeNano(int64_t prompt_tokens, int64_t output_tokens) const;
  // What must be held for it.
  int64_t HoldNanoFor(int64_t prompt_tokens, int64_t output_tokens) const;

 private:
  void Recompute();
  bool CoversAll() const;

  Options options_;
  int64_t prompt_tokens_;
  int64_t slice_tokens_;
  int64_t affordable_ = 0;
  bool asking_ = false;
  int64_t refused_at_us_ = INT64_MIN;
};

}  // namespace tollgate::inference_router
