#include "services/inference_router/run/engine_run.h"

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
TEST(EngineTimes, AStreamHasTheConfiguredTimes) {
  RunSettings settings = Settings();
  AnswerTimes times = TimesOf(settings, EngineAnswer::kStreamed, 100'000);
  EXPECT_EQ(times.first_output_ms, 60'000);
  EXPECT_EQ(times.silence_ms, 60'000);
  EXPECT_EQ(times.answer_ms, 900'000);
  settings.first_output_timeout_ms = 90'000;
  times = TimesOf(settings, EngineAnswer::kStreamed, 100'000);
  EXPECT_EQ(times.first_output_ms, 90'000);
  EXPECT_EQ(times.silence_ms, 60'000);
}

// The first output of a whole answer is also its last, so time for each token is added.
TEST(EngineTimes, AWholeAnswerHasTwoSecondsMoreForEachToken) {
  RunSettings settings = Settings();
  EXPECT_EQ(TimesOf(settings, EngineAnswer::kWhole, 0).first_output_ms, 60'000);
  EXPECT_EQ(TimesOf(settings, EngineAnswer::kWhole, 100).first_output_ms, 260'000);
  EXPECT_EQ(TimesOf(settings, EngineAnswer::kWhole, 100).silence_ms, 60'000);
  settings.first_output_timeout_ms = 90'000;
  EXPECT_EQ(TimesOf(settings, EngineAnswer::kWhole, 100).first_output_ms, 290'000);
}

TEST(EngineTimes, NoAnswerHasLongerThanTheWholeAnswerMayTake) {
  RunSettings settings = Settings();
  EXPECT_EQ(TimesOf(settings, EngineAnswer::kWhole, 420).first_output_ms, 900'000);
  EXPECT_EQ(TimesOf(settings, EngineAnswer::kWhole, 421).first_output_ms, 900'000);
  // With the largest max_tokens that is requested without streaming, and with far more.
  EXPECT_EQ(TimesOf(settings, EngineAnswer::kWhole, settings.unstreamed_max_tokens).first_output_ms,
            900'000);
  EXPECT_EQ(TimesOf(settings, EngineAnswer::kWhole, 1'000'000'000'000).first_output_ms, 900'000);
}

}  // namespace
}  // namespace tollgate::inference_router
