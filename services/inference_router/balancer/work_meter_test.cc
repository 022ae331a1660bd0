#include "services/inference_router/balancer/work_meter.h"

#include <gtest/gtest.h>

namespace tollgate::inference_router {
namespace {

struct Place {
  // 1,000 tokens of prompt, 100 of output.
  Place() {
    EXPECT_TRUE(engine->TryEnter(1'400));
    meter.Enter(engine, 1'400, 100);
  }
  EnginePointer engine = std::make_shared<EngineState>(catalog::v1::Engine(), http::BaseUrl());
  WorkMeter meter;
};

TEST(WorkMeter, WithTheFirstTokenThePromptIsDoneAndEachFurtherOneCountsDown) {
  Place place;
  EXPECT_EQ(place.engine->work(), 1'400);
  place.meter.OnOutput(0);
  EXPECT_EQ(place.engine->work(), 1'400) << "the prompt is still read";
  place.meter.OnOutput(1);
  EXPECT_EQ(place.engine->work(), 99 * kOutputWeight);
  for (int64_t tokens = 2; tokens <= 60; ++tokens) {
    place.meter.OnOutput(tokens);
    EXPECT_GE(place.engine->work(), (100 - tokens) * kOutputWeight);
    EXPECT_LT(place.engine->work(), (100 - tokens + 16) * kOutputWeight) << "in steps of 16";
  }
}

TEST(WorkMeter, AnAnswerThatIsLongerThanExpectedIsNotFree) {
  Place place;
  place.meter.OnOutput(5'000);
  EXPECT_EQ(place.engine->work(), 32 * kOutputWeight);
  place.meter.OnOutput(6'000);
  EXPECT_EQ(place.engine->work(), 32 * kOutputWeight);
}

TEST(WorkMeter, WhateverIsLeftIsGivenBackOnceWithThePlace) {
  Place place;
  place.meter.OnOutput(10);
  place.meter.Leave();
  place.meter.Leave();
  EXPECT_EQ(place.engine->work(), 0);
  EXPECT_EQ(place.engine->running(), 0);
}

TEST(WorkMeter, ARequestThatEndsWithoutLeavingGivesItsPlaceBack) {
  EnginePointer engine;
  {
    Place place;
    engine = place.engine;
    EXPECT_EQ(engine->running(), 1);
  }
  EXPECT_EQ(engine->running(), 0);
  EXPECT_EQ(engine->work(), 0);
}

}  // namespace
}  // namespace tollgate::inference_router
