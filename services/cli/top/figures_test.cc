#include "services/cli/top/figures.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tollgate::cli {
namespace {

Reading At(int64_t seconds, const std::map<std::string, std::string>& texts) {
  Reading reading;
  reading.at_us = seconds * 1'000'000;
  for (const auto& [address, text] : texts) {
    reading.processes[address] = {!text.empty(), Exposition::Parse(text)};
  }
  return reading;
}

std::string Requests(int ok, int limited, int failed) {
  return "tollgate_gateway_requests_total{code=\"\",endpoint=\"chat\",status=\"200\"} " +
         std::to_string(ok) +
         "\ntollgate_gateway_requests_total{code=\"rate_limited\",endpoint=\"chat\",status=\"429\"}"
         " " +
         std::to_string(limited) +
         "\ntollgate_gateway_requests_total{code=\"server_error\",endpoint=\"chat\",status=\"500\"}"
         " " +
         std::to_string(failed) + "\n";
}

double Rate(const Figures& figures, Outcome outcome) {
  return figures.requests_per_second[static_cast<size_t>(outcome)];
}

TEST(Figures, RatesAreOfAllProcessesTogetherByOutcome) {
  const Figures figures = Compare(At(10, {{"a", Requests(100, 0, 5)}, {"b", Requests(50, 1, 0)}}),
                                  At(20, {{"a", Requests(150, 0, 5)}, {"b", Requests(60, 21, 0)}}));
  EXPECT_EQ(Rate(figures, Outcome::kOk), 6);
  EXPECT_EQ(Rate(figures, Outcome::kRateLimited), 2);
  EXPECT_EQ(Rate(figures, Outcome::kServerError), 0);
  EXPECT_EQ(figures.requests(), 8);
  EXPECT_EQ(figures.requests_total[0], 210);
}

TEST(Figures, ACounterThatBeganAnewIsNoNegativeRate) {
  const Figures figures =
      Compare(At(0, {{"a", Requests(1000, 0, 0)}}), At(10, {{"a", Requests(30, 0, 0)}}));
  EXPECT_EQ(Rate(figures, Outcome::kOk), 3);
}

TEST(Figures, AProcessThatDidNotAnswerBeforeHasNoRates) {
  const Figures figures =
      Compare(At(0, {{"a", ""}}), At(10, {{"a", Requests(1000, 0, 0)}, {"b", ""}}));
  EXPECT_EQ(figures.requests(), 0);
  ASSERT_EQ(figures.processes.size(), 2U);
  EXPECT_TRUE(figures.processes[0].answers);
  EXPECT_FALSE(figures.processes[1].answers);
}

TEST(Figures, OneReadingHasTotalsButNoRates) {
  const Reading only = At(5, {{"a", Requests(7, 0, 0)}});
  const Figures figures = Compare(only, only);
  EXPECT_EQ(figures.seconds, 0);
  EXPECT_EQ(figures.requests(), 0);
  EXPECT_EQ(figures.requests_total[0], 7);
}

TEST(Figures, MoneyIsExactAndReplicasOfBillingTellOfOneDatabase) {
  const auto billing = [](const char* charged, int holds, int letters) {
    return "tollgate_billing_charged_nano_usd_total " + std::string(charged) +
           "\ntollgate_billing_open_holds " + std::to_string(holds) +
           "\ntollgate_billing_dead_letters_open " + std::to_string(letters) + "\n";
  };
  const Figures figures =
      Compare(At(0, {{"a", billing("1000000000", 5, 1)}, {"b", billing("0", 5, 1)}}),
              At(2, {{"a", billing("3000000000", 7, 2)}, {"b", billing("500000002", 7, 2)}}));
  EXPECT_EQ(figures.charged_nano_usd_total, 3'500'000'002);
  EXPECT_EQ(figures.charged_nano_usd_per_second, 1'250'000'001);
  EXPECT_EQ(figures.open_holds, 7);
  EXPECT_EQ(figures.dead_letters, 2);
}

TEST(Figures, AnEngineIsWhatAllRoutersTellOfIt) {
  const auto router = [](int up, int running, int ok, int bad, int tokens) {
    const std::string a = "{engine=\"gpu\"} ";
    return "tollgate_router_engine_available" + a + std::to_string(up) +
           "\ntollgate_router_engine_available{engine=\"gone\"} -1" +
           "\ntollgate_router_engine_running_requests" + a + std::to_string(running) +
           "\ntollgate_router_engine_max_requests" + a + "8" +
           "\ntollgate_router_engine_requests_total{engine=\"gpu\",outcome=\"ok\"} " +
           std::to_string(ok) +
           "\ntollgate_router_engine_requests_total{engine=\"gpu\",outcome=\"bad_gateway\"} " +
           std::to_string(bad) + "\ntollgate_router_engine_output_tokens_total" + a +
           std::to_string(tokens) + "\n";
  };
  Reading now = At(10, {{"a", router(1, 3, 20, 0, 500)}, {"b", router(0, 1, 0, 10, 0)}});
  now.queues["gpu"] = 4;
  const Figures figures =
      Compare(At(0, {{"a", router(1, 0, 0, 0, 0)}, {"b", router(0, 0, 0, 0, 0)}}), now);
  ASSERT_EQ(figures.engines.size(), 1U) << "one that the catalog dropped is not shown";
  const EngineFigures& engine = figures.engines[0];
  EXPECT_EQ(engine.id, "gpu");
  EXPECT_EQ(engine.up, 1);
  EXPECT_EQ(engine.routers, 2);
  EXPECT_EQ(engine.running, 4);
  EXPECT_EQ(engine.most, 16);
  EXPECT_EQ(engine.queue, 4);
  EXPECT_EQ(engine.requests_per_second, 3);
  EXPECT_EQ(engine.failures_per_second, 1);
  EXPECT_EQ(engine.tokens_per_second, 50);
}

TEST(Figures, QuantilesLieWithinTheirBucket) {
  const std::map<double, double> counts = {{0.1, 50}, {0.5, 90}, {1, 100}, {INFINITY, 100}};
  EXPECT_DOUBLE_EQ(Quantile(0.5, counts), 0.1);
  EXPECT_DOUBLE_EQ(Quantile(0.7, counts), 0.3);
  EXPECT_DOUBLE_EQ(Quantile(0.99, counts), 0.95);
  EXPECT_EQ(Quantile(0.99, {{1, 0}, {INFINITY, 5}}), 1) << "above the last bound: at least that";
  EXPECT_EQ(Quantile(0.5, {{1, 0}, {INFINITY, 0}}), -1);
  EXPECT_EQ(Quantile(0.5, {}), -1);
}

TEST(Figures, EnginesAreSortedByWhatIsAskedFor) {
  std::vector<EngineFigures> engines = {{.id = "b", .running = 1, .tokens_per_second = 9},
                                        {.id = "a", .running = 2, .failures_per_second = 1},
                                        {.id = "c", .running = 2}};
  const auto ids = [&](EngineOrder order) {
    Sort(engines, order);
    return engines[0].id + engines[1].id + engines[2].id;
  };
  EXPECT_EQ(ids(EngineOrder::kName), "abc");
  EXPECT_EQ(ids(EngineOrder::kLoad), "acb");
  EXPECT_EQ(ids(EngineOrder::kTokens), "bac");
  EXPECT_EQ(ids(EngineOrder::kFailures), "abc");
}

}  // namespace
}  // namespace tollgate::cli
