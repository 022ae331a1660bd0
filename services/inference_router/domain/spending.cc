#include "services/inference_router/domain/spending.h"

#include <algorithm>

namespace tollgate::inference_router {
namespace {

constexpr int64_t kDefaultSliceTokens = 4096;
constexpr int64_t kRetryAfterUs = 1'000'000;
// A shorter window would measure bursts. The first window is shorter, because the first slice may
// not last much longer than the runway.
constexpr int64_t kFirstRateWindowUs = 250'000;
constexpr int64_t kRateWindowUs = 1'000'000;

}  // namespace

Spending::Spending(const Options& options)
    : options_(options), prompt_tokens_(options.prompt_tokens_bound) {
  slice_tokens_ = kDefaultSliceTokens;
  if (options_.rates.output_pico_usd > 0 && options_.slice_nano_usd > 0) {
    slice_tokens_ = static_cast<int64_t>(static_cast<Int128>(options_.slice_nano_usd) *
                                         kPicoPerNano / options_.rates.output_pico_usd);
    slice_tokens_ = std::max<int64_t>(slice_tokens_, 1);
  }
  Recompute();
}

void Spending::Recompute() {
  affordable_ =
      OutputTokensAffordable(options_.rates, prompt_tokens_, options_.authorized_nano_usd);
}

void Spending::SetPromptTokens(int64_t tokens) {
  if (tokens == prompt_tokens_) return;
  prompt_tokens_ = tokens;
  Recompute();
}

bool Spending::CoversAll() const {
  return affordable_ == INT64_MAX ||
         (options_.max_output_tokens > 0 && affordable_ >= options_.max_output_tokens);
}

void Spending::OnOutput(int64_t output_tokens, int64_t now_us) {
  if (output_tokens <= 0) return;
  if (window_begun_us_ == INT64_MIN) {
    window_begun_us_ = now_us;
    window_begun_tokens_ = output_tokens;
    return;
  }
  const int64_t elapsed_us = now_us - window_begun_us_;
  if (elapsed_us < (tokens_per_second_ == 0 ? kFirstRateWindowUs : kRateWindowUs)) return;
  const Int128 made = std::max<int64_t>(output_tokens - window_begun_tokens_, 0);
  tokens_per_second_ = static_cast<int64_t>(made * 1'000'000 / elapsed_us);
  window_begun_us_ = now_us;
  window_begun_tokens_ = output_tokens;
}

int64_t Spending::Within(int64_t seconds) const {
  int64_t tokens = 0;
  return __builtin_mul_overflow(tokens_per_second_, seconds, &tokens) ? INT64_MAX : tokens;
}

bool Spending::WantsExtension(int64_t output_tokens, int64_t now_us) const {
  if (pending_ || CoversAll() || last_answer_ == ExtendAnswer::kClosed) return false;
  const int64_t left = affordable_ - output_tokens;
  if (left >= std::max((slice_tokens_ + 1) / 2, Within(kRunwaySeconds))) return false;
  return not_granted_at_us_ == INT64_MIN || now_us - not_granted_at_us_ >= kRetryAfterUs;
}

int64_t Spending::NextTotalNanoUsd(int64_t output_tokens) const {
  int64_t output = std::max(output_tokens, affordable_);
  const int64_t slice = std::max(slice_tokens_, Within(kSliceSeconds));
  if (__builtin_add_overflow(output, slice, &output)) output = INT64_MAX;
  if (options_.max_output_tokens > 0) output = std::min(output, options_.max_output_tokens);
  output = std::max(output, output_tokens);
  return HoldNanoUsd(prompt_tokens_, output);
}

void Spending::OnAnswer(ExtendAnswer answer, int64_t authorized_nano_usd, int64_t now_us) {
  pending_ = false;
  last_answer_ = answer;
  if (answer == ExtendAnswer::kGranted) {
    not_granted_at_us_ = INT64_MIN;
  } else {
    not_granted_at_us_ = now_us;
  }
  if (authorized_nano_usd <= options_.authorized_nano_usd) return;
  options_.authorized_nano_usd = authorized_nano_usd;
  Recompute();
}

int64_t Spending::ChargeNanoUsd(int64_t prompt_tokens, int64_t output_tokens) const {
  return tollgate::ChargeNanoUsd(CostPicoUsd(options_.rates, prompt_tokens, output_tokens));
}

int64_t Spending::HoldNanoUsd(int64_t prompt_tokens, int64_t output_tokens) const {
  return tollgate::HoldNanoUsd(CostPicoUsd(options_.rates, prompt_tokens, output_tokens));
}

}  // namespace tollgate::inference_router
