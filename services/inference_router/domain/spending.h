// How many tokens the hold pays for, and when to extend it. Pure: time is an argument. See
// decisions 1 to 4 and 41, docs/design/ledger.md 4.
#pragma once

#include <cstdint>

#include "common/money/money.h"

namespace tollgate::inference_router {

// The ledger's answer to an extension. Only kNoCredit and kCap mean that the workspace cannot pay.
enum class ExtendAnswer : uint8_t {
  kGranted,
  kNoAnswer,  // the extension may or may not have been granted
  kHeld,      // granted in part: running requests hold the rest of the credit or cap
  kNoCredit,  // granted in part: there is no more credit
  kCap,       // granted in part: the month cap is reached
  kClosed,    // the hold is no longer open
};

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
  // An extension is requested when the hold pays for less than kRunwaySeconds at the observed token
  // rate, and then covers kSliceSeconds more. The runway is longer than the ledger outage of 40 s
  // that a stream must survive.
  static constexpr int64_t kRunwaySeconds = 45;
  static constexpr int64_t kSliceSeconds = 60;

  explicit Spending(const Options& options);

  // Replaces the bound by the engine's prompt count.
  void SetPromptTokens(int64_t tokens);
  // Reports the output so far, from which the token rate is computed.
  void OnOutput(int64_t output_tokens, int64_t now_us);

  // Number of output tokens that the hold pays for.
  int64_t affordable() const { return affordable_; }
  // Whether the hold pays for the longest answer that the request allows and needs no extension.
  bool CoversAll() const;
  int64_t authorized_nano_usd() const { return options_.authorized_nano_usd; }
  int64_t tokens_per_second() const { return tokens_per_second_; }

  // True if little is left, more may be needed, no extension is pending, and none was refused or
  // unanswered within the last second.
  bool WantsExtension(int64_t output_tokens, int64_t now_us) const;
  // The total to request from the ledger, in nano-USD.
  int64_t NextTotalNanoUsd(int64_t output_tokens) const;
  void OnExtensionSent() { pending_ = true; }
  // Call with the ledger's answer and the new total of the hold (0: unknown).
  void OnAnswer(ExtendAnswer answer, int64_t authorized_nano_usd, int64_t now_us);
  bool extension_pending() const { return pending_; }
  // The latest answer; kGranted before the first.
  ExtendAnswer last_answer() const { return last_answer_; }

  // The charge for this usage, rounded down; may exceed the hold.
  int64_t ChargeNanoUsd(int64_t prompt_tokens, int64_t output_tokens) const;
  // The hold that this usage needs, rounded up.
  int64_t HoldNanoUsd(int64_t prompt_tokens, int64_t output_tokens) const;
  // The hold for this output plus the prompt as currently known.
  int64_t HoldNanoUsd(int64_t output_tokens) const {
    return HoldNanoUsd(prompt_tokens_, output_tokens);
  }

 private:
  void Recompute();
  // Number of tokens in this time at the observed rate.
  int64_t Within(int64_t seconds) const;

  Options options_;
  int64_t prompt_tokens_;
  int64_t slice_tokens_;
  int64_t affordable_ = 0;
  bool pending_ = false;  // an extension was sent and has no answer yet
  ExtendAnswer last_answer_ = ExtendAnswer::kGranted;
  int64_t not_granted_at_us_ = INT64_MIN;
  // The window that is being measured. The rate is that of the last complete window.
  int64_t window_begun_us_ = INT64_MIN;
  int64_t window_begun_tokens_ = 0;
  int64_t tokens_per_second_ = 0;
};

}  // namespace tollgate::inference_router
