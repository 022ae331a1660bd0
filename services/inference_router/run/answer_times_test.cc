#include "services/inference_router/run/answer_times.h"

#include <gtest/gtest.h>

namespace tollgate::inference_router {
namespace {

RunSettings Settings() {
  RunSettings settings;
  settings.idle_timeout_ms = 60'000;
  settings.answer_timeout_ms = 900'000;
  return settings;
}

// The first output has the time limit of any silence unless it has one of its own.
TEST(AnswerTimes, AStreamHasTheConfiguredTimes) {
  RunSettings settings = Settings();
  AnswerTimes times = TimesOf(settings, EngineAnswer::kStreamed);
  EXPECT_EQ(times.first_output_ms, 60'000);
  EXPECT_EQ(times.silence_ms, 60'000);
  EXPECT_EQ(times.answer_ms, 900'000);
  settings.first_output_timeout_ms = 90'000;
  times = TimesOf(settings, EngineAnswer::kStreamed);
  EXPECT_EQ(times.first_output_ms, 90'000);
  EXPECT_EQ(times.silence_ms, 60'000);
}

// The first output of a whole answer is also its last.
TEST(AnswerTimes, AWholeAnswerHasItsOwnTime) {
  RunSettings settings = Settings();
  settings.unstreamed_answer_ms = 120'000;
  EXPECT_EQ(TimesOf(settings, EngineAnswer::kWhole).first_output_ms, 120'000);
  EXPECT_EQ(TimesOf(settings, EngineAnswer::kWhole).silence_ms, 60'000);
  settings.answer_timeout_ms = 100'000;
  EXPECT_EQ(TimesOf(settings, EngineAnswer::kWhole).first_output_ms, 100'000);
}

TEST(AnswerTimes, AnEngineThatWasNotMeasuredHasASecondForEachToken) {
  const RunSettings settings = Settings();
  EXPECT_EQ(WholeAnswerMs(settings, TokenPace(), 0, 100), 160'000);
  EXPECT_EQ(WholeAnswerMs(settings, TokenPace(), 50'000, 100), 210'000)
      << "and 1 ms for its prompt";
}

TEST(AnswerTimes, AMeasuredEngineHasFourTimesItsPace) {
  RunSettings settings = Settings();
  TokenPace pace;
  for (size_t i = 0; i < TokenPace::kLeastAnswers; ++i) pace.NoteAnswer(2'000'000, 100);
  EXPECT_EQ(WholeAnswerMs(settings, pace, 0, 100), 60'000 + 100 * 20 * 4);
  settings.first_output_timeout_ms = 6'000;
  EXPECT_EQ(WholeAnswerMs(settings, pace, 0, 100), 6'000 + 100 * 20 * 4);
}

}  // namespace
}  // namespace tollgate::inference_router
