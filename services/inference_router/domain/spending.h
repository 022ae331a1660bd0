// How many tokens the hold pays for, and when to extend it. Pure: time is an argument.
// See decisions 1 to 4, docs/design/ledger.md 4.
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
    // Upper bound of the output over all choices; 0 = unknown.
    int64_t max_output_tokens = 0;
  };
  explicit Spending(const Options& options);

  // Replaces the bound by the engine's prompt count.
  void SetPromptTokens(int64_t tokens);

  // Number of output tokens that the hold pays for.
  int64_t affordable() const { return affordable_; }
  int64_t authorized_nano_usd() const { return options_.authorized_nano_usd; }

  // True if less than half a slice is left, more may be needed, no extension is pending, and none
  // was refused recently.
  bool WantsExtension(int64_t output_tokens, int64_t now_us) const;
  // The total to request from the ledger, in nano-USD.
  int64_t NextTotalNanoUsd(int64_t output_tokens) const;
  void OnExtensionSent() { pending_ = true; }
  // The ledger's answer: the new total of the hold.
  void OnAnswer(int64_t authorized_nano_usd, int64_t now_us);
  // The ledger did not answer; the extension may or may not have been granted.
  void OnNoAnswer(int64_t now_us);
  bool extension_pending() const { return pending_; }
  // An extension was refused, or not answered, within the last second.
  bool RefusedRecently(int64_t now_us) const;

  // The charge for this usage, rounded down; may exceed the hold.
  int64_t ChargeNanoUsd(int64_t prompt_tokens, int64_t output_tokens) const;
  // The hold that this usage needs, rounded up.
  int64_t HoldNanoUsd(int64_t prompt_tokens, int64_t output_tokens) const;

 private:
  void Recompute();
  bool CoversAll() const;

  Options options_;
  int64_t prompt_tokens_;
  int64_t slice_tokens_;
  int64_t affordable_ = 0;
  bool pending_ = false;  // an extension was sent and not answered
  int64_t refused_at_us_ = INT64_MIN;
};

}  // namespace tollgate::inference_router
