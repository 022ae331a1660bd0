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
    EXPECT_LE(engine->work(), 5'500) << "one picked at random would have up to 7,000";
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
      << "old gauges are ignored";
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

// ---- weights, ADR 0032 ----

std::vector<EnginePointer> Weighted(const std::vector<int>& weights, int64_t most = 0,
                                    int64_t slow_start_us = 0) {
  std::vector<EnginePointer> engines;
  for (const int weight : weights) {
    catalog::v1::Engine engine;
    engine.set_weight(weight);
    engine.set_max_concurrency(most);
    engines.push_back(std::make_shared<EngineState>(engine, http::BaseUrl(), slow_start_us));
  }
  return engines;
}

// Adds requests that do not end, as when all engines are as slow as their weights say.
void Fill(const std::vector<EnginePointer>& engines, int requests, int64_t now_us = kNow) {
  for (int i = 0; i < requests; ++i) {
    ASSERT_NE(SelectEngine(engines, {}, now_us, static_cast<uint64_t>(i), Need(100)).engine,
              nullptr);
  }
}

TEST(SelectEngineWeights, WorkIsGivenInProportionToTheWeights) {
  const auto engines = Weighted({1, 2, 5});
  Fill(engines, 800);
  EXPECT_NEAR(static_cast<double>(engines[0]->work()), 10'000, 200);
  EXPECT_NEAR(static_cast<double>(engines[1]->work()), 20'000, 200);
  EXPECT_NEAR(static_cast<double>(engines[2]->work()), 50'000, 200);
}

TEST(SelectEngineWeights, OfALargePoolTheyCountToo) {
  std::vector<int> weights(16, 1);
  weights.resize(32, 9);
  const auto engines = Weighted(weights);
  Fill(engines, 16 * 50 + 16 * 450);
  int64_t small = 0;
  for (size_t i = 0; i < 16; ++i) small += engines[i]->running();
  EXPECT_GE(small, 720) << "their share is 800";
  EXPECT_LE(small, 880) << "two picked evenly would often be two small ones: above 1,300";
  for (size_t i = 16; i < 32; ++i) EXPECT_NEAR(static_cast<double>(engines[i]->running()), 450, 45);
}

// ---- zones, ADR 0036 ----

TEST(SelectEngineZones, AnotherZonesEnginesGetRequestsOnlyWhileNoneOfThisOneCanTakeThem) {
  catalog::v1::Snapshot snapshot = TwoEngines(2);
  auto* pool = snapshot.mutable_pools(0);
  *pool->add_engines() = pool->engines(1);
  pool->mutable_engines(2)->set_id("standby");
  pool->mutable_engines(2)->set_weight(0);
  pool->mutable_engines(2)->set_zone("here");
  pool->mutable_engines(0)->set_zone("there");
  pool->mutable_engines(1)->set_zone("here");
  const auto select = [](const RoutingTable& table) {
    const Selection selection = SelectEngine(table.Find("ns/m")->engines, {}, kNow, 0, Need(100));
    return selection.engine == nullptr ? "" : selection.engine->id();
  };
  const RoutingTable nowhere(snapshot, nullptr);
  EXPECT_FALSE(nowhere.engines()[0]->remote() || nowhere.engines()[1]->remote());

  const RoutingTable here(snapshot, nullptr, {.zone = "here"});
  for (const char* id : {"b", "b", "a", "a", "standby"}) EXPECT_EQ(select(here), id);
  here.engines()[1]->Leave(100);
  EXPECT_EQ(select(here), "b") << "as soon as it can";
  here.engines()[0]->Leave(100);
  here.engines()[1]->Leave(100);
  here.engines()[1]->OnHealthFailure(true, 1);
  EXPECT_EQ(select(here), "a") << "b is down";

  // The load bound is computed per rank: busy engines of another zone do not raise it.
  snapshot.mutable_pools(0)->mutable_engines(1)->set_zone("elsewhere");
  const RoutingTable other(snapshot, &here, {.zone = "elsewhere"});
  EXPECT_EQ(select(other), "b") << "a new zone, a new state";
}

TEST(SelectEngineWeights, WithoutAWeightInTheCatalogItIsOne) {
  EXPECT_EQ(Engines(1)[0]->weight(), 1);
  EXPECT_EQ(Engines(1)[0]->Share(kNow), Weighted({1})[0]->Share(kNow));
}

TEST(SelectEngineWeights, AnEngineOfWeightZeroTakesRequestsOnlyWhileNoOtherCan) {
  const auto engines = Weighted({0, 1, 1}, 2);
  Fill(engines, 4);
  EXPECT_EQ(engines[0]->running(), 0);
  EXPECT_EQ(SelectEngine(engines, {}, kNow, 0, Need(100)).engine, engines[0]) << "they are full";
  engines[2]->Leave(100);
  EXPECT_EQ(SelectEngine(engines, {}, kNow, 0, Need(100)).engine, engines[2]);
  engines[1]->OnHealthFailure(true, 1);
  EXPECT_EQ(SelectEngine(engines, {engines[2]}, kNow, 0, Need(100)).engine, engines[0])
      << "one is down, and the other has failed";
  EXPECT_EQ(SelectEngine(engines, {}, kNow, 0, Need(100)).no_engine, NoEngine::kSaturated);
}

TEST(SelectEngineWeights, SeveralOfWeightZeroShareWhatTheyGet) {
  const auto engines = Weighted({0, 1, 0});
  engines[1]->PauseUntil(kNow + 1);
  Fill(engines, 10);
  EXPECT_EQ(engines[0]->running(), 5);
  EXPECT_EQ(engines[2]->running(), 5);
  EXPECT_EQ(SelectEngine(engines, {}, kNow + 1, 0, Need(100)).engine, engines[1]);
}

TEST(SelectEngineWeights, TheBoundOnCachedPromptsCountsByWeight) {
  const std::string prompt(40'000, 'a');
  const PrefixChain chain(1, prompt);
  const auto reason_with = [&](int weight) {
    const auto engines = Weighted({weight, 1});
    PrefixTable table(2);
    for (const auto& point : chain.points()) table.Add(point.hash, engines[0]->number(), kNow);
    EXPECT_TRUE(engines[0]->TryEnter(60'000));
    EXPECT_TRUE(engines[1]->TryEnter(20'000));
    EngineNeed need = Need(10'000);
    need.prefix = &chain;
    need.prefixes = &table;
    return SelectEngine(engines, {}, kNow, 0, need).reason;
  };
  EXPECT_EQ(reason_with(1), ChoiceReason::kLoad) << "its share is 40,000, and it has 60,000";
  EXPECT_EQ(reason_with(3), ChoiceReason::kPrefix) << "its share is 60,000";
}

// ---- slow start, ADR 0032 ----

constexpr int64_t kSlowUs = 10'000'000;

TEST(SelectEngineSlowStart, AnEngineThatCameBackGetsAGrowingShare) {
  const auto shares = [](int64_t after_us) {
    const auto engines = Weighted({1, 1}, 0, kSlowUs);
    engines[0]->OnHealthFailure(true, kNow - 1);
    engines[0]->OnSuccess(kNow);
    Fill(engines, 1'000, kNow + after_us);
    return static_cast<double>(engines[0]->running()) / 1'000;
  };
  EXPECT_NEAR(shares(0), 1.0 / 11, 0.01) << "a tenth of the other's";
  EXPECT_NEAR(shares(kSlowUs / 4), 1.0 / 5, 0.01);
  EXPECT_NEAR(shares(kSlowUs / 2), 1.0 / 3, 0.01);
  EXPECT_NEAR(shares(kSlowUs), 1.0 / 2, 0.01);
}

TEST(SelectEngineSlowStart, AnEngineThatIsAskedAgainAfterAFailedConnectionBeginsWhenItAnswers) {
  const auto engine = Weighted({4}, 0, kSlowUs)[0];
  EXPECT_EQ(engine->Share(kNow), 4'000) << "at the start of a router all engines are equal";
  engine->OnConnectFailure(kNow);
  const int64_t later_us = kNow + 5 * kSlowUs;
  EXPECT_TRUE(engine->Available(later_us));
  EXPECT_EQ(engine->Share(later_us), 400);
  engine->OnSuccess(later_us);
  EXPECT_EQ(engine->Share(later_us), 400);
  EXPECT_EQ(engine->Share(later_us + kSlowUs / 2), 2'000);
  engine->OnSuccess(later_us + kSlowUs / 2);
  EXPECT_EQ(engine->Share(later_us + kSlowUs / 2), 2'000) << "a further answer starts nothing";
  EXPECT_EQ(engine->Share(later_us + kSlowUs), 4'000);
}

TEST(SelectEngineSlowStart, AnEngineThatOperatorsResumeBeginsIt) {
  const auto engine = Weighted({1}, 0, kSlowUs)[0];
  engine->SetDrained(false, kNow);
  EXPECT_EQ(engine->Share(kNow), 1'000) << "it was not drained";
  engine->SetDrained(true, kNow);
  engine->SetDrained(false, kNow);
  EXPECT_EQ(engine->Share(kNow), 100);
}

TEST(SelectEngineSlowStart, ItRefusesNothingAndWithoutATimeThereIsNone) {
  const auto engines = Weighted({1, 1}, 1, kSlowUs);
  engines[0]->OnHealthFailure(true, kNow - 1);
  engines[0]->OnSuccess(kNow);
  Fill(engines, 2);
  EXPECT_EQ(engines[0]->running(), 1) << "the other one is full";
  const auto off = Weighted({1})[0];
  off->OnConnectFailure(kNow);
  EXPECT_EQ(off->Share(kNow), 1'000);
  off->OnSuccess(kNow);
  EXPECT_EQ(off->Share(kNow), 1'000);
}

// Prompts of 40,000 bytes, 10,000 tokens.
class SelectEnginePrefix : public ::testing::Test {
 protected:
  Selection Select(const std::string& prompt, uint64_t seed = 1, uint64_t session = 0) {
    const PrefixChain chain(seed, prompt);
    EngineNeed need = Need(static_cast<int64_t>(prompt.size()) / 4);
    need.prefix = &chain;
    need.prefixes = &table_;
    need.session = session;
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

// Otherwise a workspace could learn from response times what another one asks.
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

// ---- sessions, ADR 0032 ----

class SelectEngineSession : public SelectEnginePrefix {
 protected:
  static constexpr uint64_t kSession = 0x1234567812345678;
  // Prompts with nothing in common.
  Selection Say(uint64_t session, int64_t tokens = 100) {
    return Select(std::string(static_cast<size_t>(tokens) * 4, static_cast<char>('a' + said_++)), 1,
                  session);
  }
  int said_ = 0;
};

TEST_F(SelectEngineSession, ASessionGoesToItsEngineWhateverItSays) {
  const Selection first = Say(kSession);
  EXPECT_EQ(first.reason, ChoiceReason::kLoad);
  for (int i = 0; i < 8; ++i) {
    const Selection next = Say(kSession);
    EXPECT_EQ(next.engine, first.engine) << i;
    EXPECT_EQ(next.reason, ChoiceReason::kSession);
    next.engine->Leave(next.work);
  }
}

TEST_F(SelectEngineSession, AnotherSessionAndARequestWithoutOneAreNotBound) {
  const Selection first = Say(kSession);
  EXPECT_EQ(Say(kSession + 1).reason, ChoiceReason::kLoad);
  EXPECT_EQ(Say(0).reason, ChoiceReason::kLoad);
  EXPECT_EQ(Say(0).reason, ChoiceReason::kLoad);
  EXPECT_EQ(first.engine->running(), 1) << "each went to an idle engine";
}

TEST_F(SelectEngineSession, AnEngineFarAboveItsShareLosesTheSession) {
  const Selection first = Say(kSession);
  ASSERT_TRUE(first.engine->TryEnter(50'000));
  const Selection moved = Say(kSession);
  EXPECT_NE(moved.engine, first.engine);
  EXPECT_EQ(moved.reason, ChoiceReason::kLoad);
  first.engine->Leave(50'000);
  EXPECT_EQ(Say(kSession).engine, moved.engine) << "to the engine that had it last";
}

TEST_F(SelectEngineSession, AnEngineThatIsDownLosesTheSession) {
  const Selection first = Say(kSession);
  first.engine->OnHealthFailure(true, 1);
  const Selection moved = Say(kSession);
  EXPECT_NE(moved.engine, first.engine);
  first.engine->OnSuccess(kNow);
  EXPECT_EQ(Say(kSession).engine, moved.engine);
}

// The start of a compacted conversation, such as a system prompt, may be on many engines.
TEST_F(SelectEngineSession, OfEnginesWithTheSamePrefixTheSessionDecides) {
  const Selection first = Select(begin_, 1, kSession);
  first.engine->Leave(first.work);
  ASSERT_TRUE(first.engine->TryEnter(50'000));
  const Selection other = Select(begin_);
  ASSERT_NE(other.engine, first.engine);
  other.engine->Leave(other.work);
  first.engine->Leave(50'000);
  for (int i = 0; i < 4; ++i) {
    const Selection next = Select(begin_ + "more", 1, kSession);
    EXPECT_EQ(next.engine, first.engine);
    EXPECT_EQ(next.reason, ChoiceReason::kSession);
    next.engine->Leave(next.work);
  }
}

// A name such as `user` may stand for everything that one program sends.
TEST_F(SelectEngineSession, AnEngineWithFarMoreOfThePromptGoesBeforeTheSession) {
  const Selection prompt = Select(begin_);
  prompt.engine->Leave(prompt.work);
  ASSERT_TRUE(prompt.engine->TryEnter(1));
  const Selection session = Say(kSession, 1);
  ASSERT_NE(session.engine, prompt.engine);
  session.engine->Leave(session.work);
  prompt.engine->Leave(1);
  const Selection both = Select(begin_ + "more", 1, kSession);
  EXPECT_EQ(both.engine, prompt.engine);
  EXPECT_EQ(both.reason, ChoiceReason::kPrefix);
}

}  // namespace
}  // namespace tollgate::inference_router
