#include "services/inference_router/domain/spending.h"

#include <algorithm>

namespace tollgate::inference_router {
namespace {

constexpr int64_t kDefaultSliceTokens = 4096;
constexpr int64_t kRefusalMemoryUs = 1'000'000;

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

bool Spending::RefusedRecently(int64_t now_us) const {
  return refused_at_us_ != INT64_MIN && now_us - refused_at_us_ < kRefusalMemoryUs;
}

bool Spending::WantsExtension(int64_t output_tokens, int64_t now_us) const {
  if (pending_ || CoversAll()) return false;
  return affordable_ - output_tokens < (slice_tokens_ + 1) / 2 && !RefusedRecently(now_us);
}

int64_t Spending::NextTotalNanoUsd(int64_t output_tokens) const {
  int64_t output = output_tokens;
  output = std::max(output, affordable_);
  if (__builtin_add_overflow(output, slice_tokens_, &output)) output = INT64_MAX;
  if (options_.max_output_tokens > 0) output = std::min(output, options_.max_output_tokens);
  output = std::max(output, output_tokens);
  return HoldNanoUsd(prompt_tokens_, output);
}

void Spending::OnAnswer(int64_t authorized_nano_usd, int64_t now_us) {
  pending_ = false;
  if (authorized_nano_usd > options_.authorized_nano_usd) {
    options_.authorized_nano_usd = authorized_nano_usd;
    const int64_t before = affordable_;
    Recompute();
    // A grant of less than a quarter of a slice means that the credit is used up.
    if (CoversAll() || affordable_ - before >= (slice_tokens_ + 3) / 4) {
      refused_at_us_ = INT64_MIN;
      return;
    }
  }
  refused_at_us_ = now_us;
}

void Spending::OnNoAnswer(int64_t now_us) {
  pending_ = false;
  refused_at_us_ = now_us;
}

int64_t Spending::ChargeNanoUsd(int64_t prompt_tokens, int64_t output_tokens) const {
  return tollgate::ChargeNanoUsd(CostPicoUsd(options_.rates, prompt_tokens, output_tokens));
}

int64_t Spending::HoldNanoUsd(int64_t prompt_tokens, int64_t output_tokens) const {
  return tollgate::HoldNanoUsd(CostPicoUsd(options_.rates, prompt_tokens, output_tokens));
}

}  // namespace tollgate::inference_router
