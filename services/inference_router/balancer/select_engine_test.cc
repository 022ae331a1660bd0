#include "services/inference_router/balancer/select_engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "services/inference_router/balancer/routing_table.h"
#include "services/inference_router/balancer/testing/two_engines.h"

namespace tollgate::inference_router {
namespace {

constexpr int64_t kNow = 1'000'000'000;

std::vector<EnginePointer> Engines(int count) {
  std::vector<EnginePointer> engines;
  for (int i = 0; i < count; ++i) {
    engines.push_back(std::make_shared<EngineState>(catalog::v1::Engine(), http::BaseUrl()));
  }
  return engines;
}

EngineNeed Need(int64_t prompt, int64_t output = 0) {
  return {.work = {.prompt = prompt, .output = output}};
}

TEST(SelectEngine, SelectsTheLeastLoaded) {
  RoutingTable table(TwoEngines(), nullptr);
  const Route& route = *table.Find("ns/m");
  EXPECT_EQ(route.engine_model, "ns/m");
  for (uint64_t rotation = 0; rotation < 10; ++rotation) {
    ASSERT_NE(SelectEngine(route.engines, {}, kNow, rotation).engine, nullptr);
  }
  EXPECT_EQ(route.engines[0]->running(), 5);
  EXPECT_EQ(route.engines[1]->running(), 5);
}

TEST(SelectEngine, BreaksTiesByRotation) {
  RoutingTable table(TwoEngines(), nullptr);
  const auto& engines = table.Find("ns/m")->engines;
  Selection first = SelectEngine(engines, {}, kNow, 0);
  first.engine->Leave();
  Selection second = SelectEngine(engines, {}, kNow, 1);
  EXPECT_NE(first.engine, second.engine);
}

TEST(SelectEngine, SkipsTriedAndUnavailableEngines) {
  RoutingTable table(TwoEngines(), nullptr);
  const auto& engines = table.Find("ns/m")->engines;
  EXPECT_EQ(SelectEngine(engines, {engines[0]}, kNow, 0).engine, engines[1]);
  engines[1]->OnHealthFailure(true, 1);
  Selection none = SelectEngine(engines, {engines[0]}, kNow, 0);
  EXPECT_EQ(none.engine, nullptr);
  EXPECT_EQ(none.no_engine, NoEngine::kDown);
  EXPECT_GE(none.retry_after_ms, 1000);
}

TEST(SelectEngine, DistinguishesSaturatedFromDown) {
  RoutingTable table(TwoEngines(1), nullptr);
  const auto& engines = table.Find("ns/m")->engines;
  EXPECT_NE(SelectEngine(engines, {}, kNow, 0).engine, nullptr);
  EXPECT_NE(SelectEngine(engines, {}, kNow, 0).engine, nullptr);
  EXPECT_EQ(SelectEngine(engines, {}, kNow, 0).no_engine, NoEngine::kSaturated);
  engines[0]->Leave();
  EXPECT_EQ(SelectEngine(engines, {}, kNow, 0).engine, engines[0]);
}

TEST(SelectEngine, SelectsTheOneWithLeastWorkNotWithFewestRequests) {
  const auto engines = Engines(2);
  ASSERT_TRUE(engines[0]->TryEnter(10'000));
  for (int i = 0; i < 9; ++i) {
    const Selection selection = SelectEngine(engines, {}, kNow, 0, Need(600, 100));
    EXPECT_EQ(selection.engine, engines[1]) << i;
    EXPECT_EQ(selection.work, 1'000);
    EXPECT_EQ(selection.reason, ChoiceReason::kLoad);
  }
  EXPECT_EQ(engines[1]->work(), 9'000);
}

TEST(SelectEngine, OfALargePoolTwoAreComparedAndTheWorkIsStillSpread) {
  const auto engines = Engines(32);
  for (uint64_t i = 0; i < 32 * 50; ++i) {
    ASSERT_NE(SelectEngine(engines, {}, kNow, i, Need(100)).engine, nullptr);
  }
  for (const auto& engine : engines) {
    EXPECT_GE(engine->work(), 4'500);
    EXPECT_LE(engine->work(), 5'500) << "one taken at random would have up to 7,000";
  }
  const auto again = Engines(32);
  for (uint64_t i = 0; i < 32 * 50; ++i) SelectEngine(again, {}, kNow, i, Need(100));
  for (size_t i = 0; i < engines.size(); ++i) EXPECT_EQ(again[i]->work(), engines[i]->work());
}

TEST(SelectEngine, OfALargePoolTheLastPlaceIsFound) {
  auto engines = Engines(32);
  catalog::v1::Engine narrow;
  narrow.set_max_concurrency(1);
  for (auto& engine : engines) engine = std::make_shared<EngineState>(narrow, http::BaseUrl());
  for (uint64_t i = 0; i < 32; ++i) {
    ASSERT_NE(SelectEngine(engines, {}, kNow, i, Need(100)).engine, nullptr) << i;
  }
  EXPECT_EQ(SelectEngine(engines, {}, kNow, 0, Need(100)).no_engine, NoEngine::kSaturated);
}

TEST(SelectEngine, FreshGaugesCountTheWorkOfOthers) {
  const auto engines = Engines(2);
  engines[0]->NoteLoad({.queued = 1, .running = 3, .fresh_until_us = kNow + 10'000'000});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(SelectEngine(engines, {}, kNow, 0, Need(1'000)).engine, engines[1]) << i;
  }
  const int64_t later_us = kNow + 60'000'000;
  EXPECT_EQ(SelectEngine(engines, {}, later_us, 0, Need(1'000)).engine, engines[0])
      << "old gauges say nothing";
}

TEST(SelectEngine, OwnRequestsAreNotCountedTwiceWithGauges) {
  const auto engines = Engines(1);
  ASSERT_TRUE(engines[0]->TryEnter(500));
  engines[0]->NoteLoad({.running = 1, .fresh_until_us = kNow + 1});
  EXPECT_EQ(engines[0]->Load(kNow), 500);
}

TEST(SelectEngine, AnEngineWhoseCacheIsFullIsTheLastToBeAsked) {
  const auto engines = Engines(2);
  ASSERT_TRUE(engines[1]->TryEnter(100'000));
  engines[0]->NoteLoad({.cache_use = 0.99, .fresh_until_us = kNow + 1});
  EXPECT_EQ(SelectEngine(engines, {}, kNow, 0, Need(100)).engine, engines[1]);
  EXPECT_EQ(SelectEngine(engines, {engines[1]}, kNow, 0, Need(100)).engine, engines[0]);
}

TEST(SelectEngine, AnEngineThatAskedForAPauseIsNotAskedUntilItIsOver) {
  const auto engines = Engines(2);
  engines[0]->PauseUntil(kNow + 7'000'000);
  engines[0]->PauseUntil(kNow + 2'000'000);
  for (uint64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(SelectEngine(engines, {}, kNow, i, Need(100)).engine, engines[1]);
  }
  engines[1]->PauseUntil(kNow + 9'000'000);
  const Selection none = SelectEngine(engines, {}, kNow, 0, Need(100));
  EXPECT_EQ(none.no_engine, NoEngine::kSaturated) << "it is up";
  EXPECT_EQ(none.retry_after_ms, 7'000);
  EXPECT_EQ(SelectEngine(engines, {}, kNow + 7'000'000, 0, Need(100)).engine, engines[0]);
}

// Prompts of 40,000 bytes, 10,000 tokens.
class SelectEnginePrefix : public ::testing::Test {
 protected:
  Selection Select(const std::string& prompt, uint64_t seed = 1) {
    const PrefixChain chain(seed, prompt);
    EngineNeed need = Need(static_cast<int64_t>(prompt.size()) / 4);
    need.prefix = &chain;
    need.prefixes = &table_;
    return SelectEngine(engines_, {}, kNow, ++rotation_, need);
  }
  std::vector<EnginePointer> engines_ = Engines(4);
  PrefixTable table_{4};
  uint64_t rotation_ = 0;
  const std::string begin_ = std::string(20'000, 'a') + std::string(18'000, 'b');
};

TEST_F(SelectEnginePrefix, APromptGoesWhereItsBeginningWentAndOnlyTheRestIsWork) {
  const Selection first = Select(begin_ + std::string(2'000, 'c'));
  EXPECT_EQ(first.reason, ChoiceReason::kLoad);
  EXPECT_EQ(first.work, 10'000);
  first.engine->Leave(first.work);
  for (int i = 0; i < 8; ++i) {
    const Selection next = Select(begin_ + std::string(2'000, static_cast<char>('d' + i)));
    EXPECT_EQ(next.engine, first.engine) << i;
    EXPECT_EQ(next.reason, ChoiceReason::kPrefix);
    EXPECT_LT(next.work, 2'000);
    next.engine->Leave(next.work);
  }
}

TEST_F(SelectEnginePrefix, AnEngineFarAboveTheMeanIsNotPreferred) {
  const Selection first = Select(begin_);
  ASSERT_TRUE(first.engine->TryEnter(50'000));
  const Selection second = Select(begin_);
  EXPECT_NE(second.engine, first.engine);
  EXPECT_EQ(second.reason, ChoiceReason::kLoad);
  second.engine->Leave(second.work);
  const Selection third = Select(begin_);
  EXPECT_EQ(third.engine, second.engine) << "now that one has it, too";
  EXPECT_EQ(third.reason, ChoiceReason::kPrefix);
}

TEST_F(SelectEnginePrefix, ACommonLineAtTheBeginningIsNoReason) {
  const std::string line(4'000, 'x');
  const Selection first = Select(line + std::string(36'000, 'y'));
  const Selection second = Select(line + std::string(36'000, 'z'));
  EXPECT_NE(second.engine, first.engine);
  EXPECT_EQ(second.reason, ChoiceReason::kLoad);
}

// Else one workspace could learn from its times what another one asks.
TEST_F(SelectEnginePrefix, AnotherSeedFindsNothing) {
  const Selection first = Select(begin_, 1);
  const Selection other = Select(begin_, 2);
  EXPECT_NE(other.engine, first.engine);
  EXPECT_EQ(other.reason, ChoiceReason::kLoad);
  EXPECT_EQ(other.work, 9'500);
}

TEST_F(SelectEnginePrefix, AnEngineThatIsDownIsNotPreferred) {
  const Selection first = Select(begin_);
  first.engine->OnHealthFailure(true, 1);
  EXPECT_NE(Select(begin_).engine, first.engine);
}

}  // namespace
}  // namespace tollgate::inference_router
