#include "services/inference_router/balancer/token_pace.h"

#include <gtest/gtest.h>

namespace tollgate::inference_router {
namespace {

TEST(TokenPace, NeedsSeveralAnswersThatAreNotMostlyPrompt) {
  TokenPace pace;
  for (int i = 0; i < 100; ++i) pace.NoteAnswer(1'000'000, TokenPace::kLeastTokens - 1);
  EXPECT_EQ(pace.p99_us(), 0);
  for (size_t i = 1; i < TokenPace::kLeastAnswers; ++i) pace.NoteAnswer(2'000'000, 100);
  EXPECT_EQ(pace.p99_us(), 0);
  pace.NoteAnswer(2'000'000, 100);
  EXPECT_EQ(pace.p99_us(), 20'000);
}

TEST(TokenPace, IsThe99thPercentileOfTheLatestAnswers) {
  TokenPace pace;
  for (int i = 0; i < 126; ++i) pace.NoteAnswer(1'000, 100);
  pace.NoteAnswer(900'000, 100);
  EXPECT_EQ(pace.p99_us(), 10) << "one answer in 127 is slower";
  pace.NoteAnswer(800'000, 100);
  EXPECT_EQ(pace.p99_us(), 8'000);
  for (int i = 0; i < 128; ++i) pace.NoteAnswer(3'000, 100);
  EXPECT_EQ(pace.p99_us(), 30) << "the others are forgotten";
}

TEST(TokenPace, IsMeasuredAgainOnceItHasProvedWrong) {
  TokenPace pace;
  for (size_t i = 0; i < TokenPace::kLeastAnswers; ++i) pace.NoteAnswer(1'000, 100);
  EXPECT_EQ(pace.p99_us(), 10);
  pace.Forget();
  EXPECT_EQ(pace.p99_us(), 0);
  for (size_t i = 0; i < TokenPace::kLeastAnswers; ++i) pace.NoteAnswer(7'000, 100);
  EXPECT_EQ(pace.p99_us(), 70);
}

}  // namespace
}  // namespace tollgate::inference_router
