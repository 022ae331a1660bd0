#include "services/inference_router/run/answer_times.h"

#include <algorithm>

namespace tollgate::inference_router {
namespace {

// Bounds on the time of a whole answer: time to the first token unless it is configured, for the
// prompt, and for each token of an engine that was not measured or has this multiple of its pace.
constexpr int64_t kFirstTokenMs = 60'000;
constexpr int64_t kPromptTokensPerMs = 1;
constexpr int64_t kUnmeasuredTokenMs = 1'000;
constexpr int64_t kPaceMultiple = 4;

}  // namespace

AnswerTimes TimesOf(const RunSettings& settings, EngineAnswer answer) {
  AnswerTimes times = {.first_output_ms = settings.first_output_timeout_ms > 0
                                              ? settings.first_output_timeout_ms
                                              : settings.idle_timeout_ms,
                       .silence_ms = settings.idle_timeout_ms,
                       .answer_ms = settings.answer_timeout_ms};
  if (answer == EngineAnswer::kWhole) {
    times.first_output_ms = std::min(times.answer_ms, settings.unstreamed_answer_ms);
  }
  return times;
}

int64_t WholeAnswerMs(const RunSettings& settings, const TokenPace& pace, int64_t prompt_tokens,
                      int64_t max_tokens) {
  const int64_t first_ms = settings.first_output_timeout_ms > 0
                               ? settings.first_output_timeout_ms
                               : std::min(kFirstTokenMs, settings.idle_timeout_ms);
  const int64_t p99_us = pace.p99_us();
  const int64_t tokens_ms =
      p99_us > 0 ? max_tokens * p99_us * kPaceMultiple / 1'000 : max_tokens * kUnmeasuredTokenMs;
  return first_ms + prompt_tokens / kPromptTokensPerMs + tokens_ms;
}

}  // namespace tollgate::inference_router
