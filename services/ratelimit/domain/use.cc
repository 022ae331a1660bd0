#include "services/ratelimit/domain/use.h"

#include <algorithm>

namespace tollgate::ratelimit {
namespace {

uint32_t MinuteOf(int64_t us) { return static_cast<uint32_t>(us / kMinuteUs); }
bool Told(uint32_t minute, int64_t now_us) {
  return minute + kMinutesOfUse > MinuteOf(now_us) && minute <= MinuteOf(now_us);
}
void Raise(uint32_t& peak, int64_t value) {
  peak = std::max(peak, static_cast<uint32_t>(std::clamp<int64_t>(value, 0, UINT32_MAX)));
}

}  // namespace

MinuteUse& UseHistory::At(int64_t now_us) {
  const uint32_t minute = MinuteOf(now_us);
  if (minutes_.empty() || minutes_.back().minute < minute) {
    Forget(now_us);
    minutes_.push_back({.minute = minute});
  }
  return minutes_.back();
}

void UseHistory::Admit(int64_t tokens, int64_t requests_ns, int64_t tokens_ns, int64_t now_us) {
  MinuteUse& use = At(now_us);
  ++use.requests;
  if (tokens >= 0) use.tokens += std::min(tokens, kMaxCountedTokens);
  Raise(use.requests_peak_us, requests_ns / 1000);
  Raise(use.tokens_peak_us, tokens_ns / 1000);
}

void UseHistory::Refuse(const Refusals& refusals, int64_t now_us) {
  MinuteUse& use = At(now_us);
  if (refusals.requests) ++use.refused_requests;
  if (refusals.concurrency) ++use.refused_concurrency;
  if (refusals.tokens) ++use.refused_tokens;
}

void UseHistory::Running(int64_t running, int64_t now_us) {
  if (running > 0) Raise(At(now_us).running_peak, running);
}

void UseHistory::TokensUsed(int64_t tokens_ns, int64_t now_us) {
  Raise(At(now_us).tokens_peak_us, tokens_ns / 1000);
}

void UseHistory::Correct(int64_t admitted_us, int64_t requests, int64_t tokens, int64_t now_us) {
  const uint32_t minute = MinuteOf(admitted_us);
  if (!Told(minute, now_us)) return;
  const auto found = std::ranges::lower_bound(minutes_, minute, {}, &MinuteUse::minute);
  if (found == minutes_.end() || found->minute != minute) return;
  found->requests = static_cast<uint32_t>(std::max<int64_t>(found->requests + requests, 0));
  found->tokens = std::max<int64_t>(found->tokens + tokens, 0);
}

bool UseHistory::Forget(int64_t now_us) {
  const auto told = std::ranges::find_if(
      minutes_, [now_us](const MinuteUse& use) { return Told(use.minute, now_us); });
  if (told != minutes_.begin()) minutes_.erase(minutes_.begin(), told);
  if (minutes_.empty()) minutes_.shrink_to_fit();
  return minutes_.empty();
}

std::vector<MinuteUse> UseHistory::Read(int64_t now_us) const {
  std::vector<MinuteUse> told;
  std::ranges::copy_if(minutes_, std::back_inserter(told),
                       [now_us](const MinuteUse& use) { return Told(use.minute, now_us); });
  return told;
}

}  // namespace tollgate::ratelimit
