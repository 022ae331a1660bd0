// Tests the three load shapes against the simulated engine. The bounds hold on a busy machine:
// times are checked with a given clock in answer_reader_test.cc.
#include "tests/bench/load.h"

#include <gtest/gtest.h>

#include "tests/support/engine_sim.h"

namespace tollgate::bench {
namespace {

class LoadTest : public ::testing::Test {
 protected:
  void SetUp() override {
    sim_.SetDefaultScript(R"({"tokens":10,"token_ms":5})");
    ASSERT_TRUE(sim_.Start());
    options_.port = sim_.port();
    options_.warmup_ms = 100;
    options_.window_ms = 1000;
    options_.connections = 10;
  }
  void Ask(const std::string& more) {
    const std::string body =
        R"({"model":"sim/model","messages":[{"role":"user","content":"x"}])" + more + "}";
    options_.requests = {"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: " +
                         std::to_string(body.size()) + "\r\n\r\n" + body};
  }
  test::EngineSim sim_;
  LoadOptions options_;
};

TEST_F(LoadTest, ClosedLoopCountsWholeRequests) {
  Ask(R"(,"x_sim":{"token_ms":0})");
  const LoadReport report = RunLoad(options_);
  EXPECT_EQ(report.errors, 0) << report.first_error;
  EXPECT_GT(report.requests, 10);
  EXPECT_EQ(report.latency.count(), report.requests);
}

TEST_F(LoadTest, StreamsAreKeptOpenAndTheirEventsCounted) {
  options_.mode = Mode::kStreams;
  Ask(R"(,"stream":true,"x_sim":{"tokens":1000000})");
  const LoadReport report = RunLoad(options_);
  EXPECT_EQ(report.errors, 0) << report.first_error;
  EXPECT_GT(report.events, 10);
  EXPECT_GT(report.gap.count(), 0);
  EXPECT_EQ(report.open_at_end, 10);
}

TEST_F(LoadTest, OpenLoopStartsRequestsAtTheRate) {
  options_.mode = Mode::kOpen;
  options_.rate = 200;
  // As many as requests are due: none has to wait for another.
  options_.connections = 220;
  Ask(R"(,"stream":true)");
  const LoadReport report = RunLoad(options_);
  EXPECT_EQ(report.errors, 0) << report.first_error;
  EXPECT_EQ(report.late, 0);
  EXPECT_GT(report.requests, 10);
  EXPECT_LE(report.requests, 220);
  EXPECT_GE(report.latency.Percentile(0.5), 40'000);
}

TEST_F(LoadTest, ErrorsAreCounted) {
  Ask(R"(,"x_sim":{"status":500,"delay_ms":20})");
  EXPECT_GT(RunLoad(options_).errors, 0);
}

}  // namespace
}  // namespace tollgate::bench
