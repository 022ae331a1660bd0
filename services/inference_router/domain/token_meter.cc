#include "services/inference_router/domain/token_meter.h"

#include <algorithm>

namespace tollgate::inference_router {
namespace {

// Text has about four bytes per token, and the prompt's bound counts bytes. Used only if the engine
// reports no prompt count. Rounds in the client's favor.
constexpr int64_t kBytesPerPromptToken = 4;
// Used only for a whole answer without a count. Also rounds in the client's favor.
constexpr int64_t kBytesPerOutputToken = 5;
// More than any context window.
constexpr int64_t kMaxPromptTokens = 100'000'000;
// Decision 9: a count more than 2 % above the router's own bound is rejected.
constexpr int64_t kTolerancePercent = 2;
// A believed count outside this band of bytes per token is reported: text has three to four. Short
// texts are not judged.
constexpr int64_t kMinJudgedBytes = 256;
constexpr int64_t kMinBytesPerTenTokens = 15;
constexpr int64_t kMaxBytesPerTenTokens = 120;

}  // namespace

TokenMeter::TokenMeter(const Options& options)
    : options_(options), own_(options.choices), choices_(std::max(options.choices, 1)) {
  const auto each = static_cast<size_t>(std::max(options.choices_per_prompt, 0));
  if (each > 0) prompts_.resize((choices_.size() + each - 1) / each);
}

void TokenMeter::OnDelta(const inference::v1::Delta& delta) {
  const int64_t before = own_.chunks();
  own_.Add(delta);
  if (own_.chunks() == before) return;
  AddTokens(static_cast<size_t>(delta.choice()), 1, delta.reasoning_json().empty() ? 0 : 1);
}

void TokenMeter::CountBySize(const inference::v1::Delta& delta) {
  OwnCount size(options_.choices);
  size.Add(delta);
  if (size.chunks() == 0) return;
  const auto tokens = [](int64_t bytes) {
    return (bytes + kBytesPerOutputToken - 1) / kBytesPerOutputToken;
  };
  // OnDelta has counted one token.
  AddTokens(static_cast<size_t>(delta.choice()), tokens(size.bytes()) - 1,
            std::max<int64_t>(tokens(size.reasoning_bytes()) - 1, 0));
}

void TokenMeter::AddTokens(size_t choice, int64_t tokens, int64_t reasoning) {
  reasoning_since_ += reasoning;
  since_total_ += tokens;
  if (choice < choices_.size()) choices_[choice].since += tokens;
  completion_ = std::max(completion_, Charged());
}

void TokenMeter::OnUsage(const EngineUsage& usage) {
  const size_t choice = static_cast<size_t>(usage.choice);
  const bool of_one_choice =
      options_.usage_per_choice && usage.choice >= 0 && choice < choices_.size();
  last_ = usage;
  if (of_one_choice && !prompts_.empty()) {
    AddUpPrompts(choice);
  } else if (of_one_choice && options_.prompt_per_choice) {
    last_->prompt_tokens.reset();
  }
  if (last_->prompt_tokens) OnPrompt(*last_->prompt_tokens);
  if (!usage.completion_tokens) return;
  const int64_t reported = *usage.completion_tokens;
  // A rejected report changes nothing: the last plausible report and the deltas since then remain.
  const bool has_text =
      of_one_choice ? choices_[choice].reported + choices_[choice].since > 0 : own_.bytes() > 0;
  implausible_ = reported < 0 || (reported == 0 && has_text) || !IsPlausible(reported);
  if (implausible_) return;
  if (of_one_choice) {
    const PerChoice before = choices_[choice];
    choices_[choice] = PerChoice{std::max(reported, before.reported), 0};
    total_.reset();
    if (!IsPlausible(Sum())) {
      choices_[choice] = before;
      implausible_ = true;
      return;
    }
  } else {
    total_ = reported;
    since_total_ = 0;
  }
  reported_ = true;
  completion_ = std::max(completion_, Charged());
  AttributeReport();
}

void TokenMeter::AddUpPrompts(size_t choice) {
  const int64_t reported = last_->prompt_tokens.value_or(0);
  if (reported <= 0 || reported > MaxPromptTokens()) return;  // implausible
  prompts_[choice / static_cast<size_t>(options_.choices_per_prompt)] = *last_;
  int64_t prompt = 0, cached = 0, written = 0;
  for (const std::optional<EngineUsage>& one : prompts_) {
    if (!one) return last_->prompt_tokens.reset();  // the sum is not known yet
    const int64_t tokens = *one->prompt_tokens;
    prompt += tokens;
    cached += std::clamp<int64_t>(one->cached_tokens, 0, tokens);
    written += std::clamp<int64_t>(one->cache_write_tokens, 0, tokens);
  }
  last_->prompt_tokens = prompt;
  last_->cached_tokens = cached;
  last_->cache_write_tokens = written;
}

void TokenMeter::AttributeReport() {
  const int64_t tokens = completion_ - reported_at_.completion;
  const int64_t bytes = own_.bytes() - reported_at_.bytes;
  const int64_t reasoning_bytes = own_.reasoning_bytes() - reported_at_.reasoning_bytes;
  if (bytes > 0) reasoning_ += tokens * reasoning_bytes / bytes;
  reported_at_ = {
      .completion = completion_, .bytes = own_.bytes(), .reasoning_bytes = own_.reasoning_bytes()};
  reasoning_since_ = 0;
}

int64_t TokenMeter::reasoning_tokens() const {
  const int64_t reported = last_ ? last_->reasoning_tokens : 0;
  return std::clamp<int64_t>(reported > 0 ? reported : reasoning_ + reasoning_since_, 0,
                             completion_);
}

bool TokenMeter::IsPlausible(int64_t tokens) const {
  const int64_t bound = own_.bound() + options_.unseen_tokens;
  return tokens - bound <= bound * kTolerancePercent / 100;
}

bool TokenMeter::IsUnlikely(int64_t tokens) const {
  const int64_t bytes = own_.bytes();
  if (!reported_ || bytes < kMinJudgedBytes) return false;
  const int64_t invisible = own_.bound() - bytes + options_.unseen_tokens;
  return (tokens - invisible) * kMinBytesPerTenTokens > bytes * 10 ||
         tokens * kMaxBytesPerTenTokens < bytes * 10;
}

int64_t TokenMeter::Sum() const {
  if (total_) return *total_ + since_total_;
  int64_t sum = 0;
  for (const PerChoice& choice : choices_) {
    sum += choice.reported + choice.since;
  }
  return sum;
}

int64_t TokenMeter::Charged() const {
  const int64_t sum = Sum();
  return options_.most_tokens > 0 ? std::min(sum, options_.most_tokens) : sum;
}

int64_t TokenMeter::tokens_of(int choice) const {
  if (choices_.size() == 1 && options_.unseen_tokens == 0) return Sum();
  const auto place = static_cast<size_t>(choice);
  return place < choices_.size() ? choices_[place].reported + choices_[place].since : 0;
}

int64_t TokenMeter::MaxPromptTokens() const {
  return options_.prompt_tokens_bound > 0 ? options_.prompt_tokens_bound : kMaxPromptTokens;
}

void TokenMeter::OnPrompt(int64_t reported) {
  prompt_implausible_ = reported < 0 || reported > MaxPromptTokens();
  if (!prompt_implausible_ && reported > 0) prompt_ = reported;
}

int64_t TokenMeter::prompt_tokens() const {
  if (prompt_ > 0) return prompt_;
  const bool above_bound =
      last_ && last_->prompt_tokens && *last_->prompt_tokens > MaxPromptTokens();
  return above_bound ? MaxPromptTokens() : 0;
}

int64_t TokenMeter::prompt_tokens_estimate() const {
  if (options_.prompt_tokens_estimate > 0) return options_.prompt_tokens_estimate;
  return (options_.prompt_tokens_bound + kBytesPerPromptToken - 1) / kBytesPerPromptToken;
}

Measured TokenMeter::Measure() const {
  Measured measured;
  common::v1::Usage& usage = measured.usage;
  const bool rejected = implausible_ || prompt_implausible_;

  // Without a plausible report this is the router's own count.
  const int64_t completion = Charged();
  measured.mismatch = rejected || completion < Sum() || IsUnlikely(completion);
  measured.estimated = rejected || (!reported_ && completion > 0);
  usage.set_completion_tokens(completion);

  if (prompt_tokens() == 0) {
    usage.set_prompt_tokens(prompt_tokens_estimate());
    measured.estimated = true;
  } else {
    usage.set_prompt_tokens(prompt_tokens());
  }
  if (last_) {
    const int64_t prompt = usage.prompt_tokens();
    const int64_t cached = std::clamp<int64_t>(last_->cached_tokens, 0, prompt);
    usage.set_cached_tokens(cached);
    usage.set_cache_write_tokens(
        std::clamp<int64_t>(last_->cache_write_tokens, 0, prompt - cached));
  }
  usage.set_reasoning_tokens(std::min(reasoning_tokens(), completion));
  return measured;
}

}  // namespace tollgate::inference_router
