// The instruments before the measurement.
#include <gtest/gtest.h>

#include "tests/bench/answer_reader.h"
#include "tests/bench/histogram.h"
#include "tests/bench/load.h"
#include "tests/support/engine_sim.h"

namespace tollgate::bench {
namespace {

TEST(HistogramTest, PercentilesAreWithinTwoPercent) {
  Histogram histogram;
  for (int64_t i = 1; i <= 100'000; ++i) histogram.Add(i);
  EXPECT_NEAR(static_cast<double>(histogram.Percentile(0.5)), 50'000, 1000);
  EXPECT_NEAR(static_cast<double>(histogram.Percentile(0.99)), 99'000, 2000);
  EXPECT_EQ(histogram.Percentile(1), 100'000);
  EXPECT_EQ(Histogram().Percentile(0.5), 0);
}

TEST(AnswerReaderTest, CountsEventsHoweverTheBytesAreCut) {
  const std::string body[] = {"data: {\"delta\":{\"content\":\"\"}}\n\n",
                              "data: {\"delta\":{\"content\":\"a\"}}\n\n", "data: [DONE]\n\n"};
  std::string answer =
      "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const std::string& event : body) {
    char size[16];
    std::snprintf(size, sizeof size, "%zx\r\n", event.size());
    answer += size + event + "\r\n";
  }
  answer += "0\r\n\r\n";
  for (size_t step = 1; step < answer.size(); ++step) {
    LoadReport report;
    AnswerReader reader;
    reader.Start(0);
    auto state = AnswerReader::State::kMore;
    for (size_t at = 0; at < answer.size(); at += step) {
      ASSERT_EQ(state, AnswerReader::State::kMore);
      state = reader.Take(std::string_view(answer).substr(at, step), 1000, true, report);
    }
    EXPECT_EQ(state, AnswerReader::State::kDone) << step;
    EXPECT_EQ(report.events, 3);
    EXPECT_EQ(report.first_token.count(), 1);
    EXPECT_TRUE(reader.ok());
  }
}

class LoadTest : public ::testing::Test {
 protected:
  void SetUp() override {
    sim_.SetDefaultScript(R"({"tokens":10,"token_ms":5})");
    ASSERT_TRUE(sim_.Start());
    options_.port = sim_.port();
    options_.warmup_ms = 100;
    options_.window_ms = 300;
    options_.connections = 10;
  }
  void Ask(const std::string& more) {
    const std::string body =
        R"({"model":"sim/model","messages":[{"role":"user","content":"x"}])" + more + "}";
    options_.request = "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: " +
                       std::to_string(body.size()) + "\r\n\r\n" + body;
  }
  test::EngineSim sim_;
  LoadOptions options_;
};

TEST_F(LoadTest, ClosedLoopCountsWholeRequests) {
  Ask(R"(,"x_sim":{"token_ms":0})");
  const LoadReport report = RunLoad(options_);
  EXPECT_EQ(report.errors, 0) << report.first_error;
  EXPECT_GT(report.requests, 100);
  EXPECT_EQ(report.latency.count(), report.requests);
}

TEST_F(LoadTest, StreamsSeeThePaceOfTheEngine) {
  options_.mode = Mode::kStreams;
  Ask(R"(,"stream":true,"x_sim":{"tokens":1000})");
  const LoadReport report = RunLoad(options_);
  EXPECT_EQ(report.errors, 0) << report.first_error;
  EXPECT_NEAR(static_cast<double>(report.events), 10 * 300 / 5, 150);
  EXPECT_NEAR(static_cast<double>(report.gap.Percentile(0.5)), 5000, 1500);
  EXPECT_EQ(report.open_at_end, 10);
}

TEST_F(LoadTest, OpenLoopKeepsTheRate) {
  options_.mode = Mode::kOpen;
  options_.rate = 200;
  options_.connections = 100;
  Ask(R"(,"stream":true)");
  const LoadReport report = RunLoad(options_);
  EXPECT_EQ(report.errors, 0) << report.first_error;
  EXPECT_EQ(report.late, 0);
  EXPECT_NEAR(static_cast<double>(report.requests), 60, 20);
  EXPECT_GE(report.latency.Percentile(0.5), 40'000);
}

TEST_F(LoadTest, ErrorsAreCounted) {
  Ask(R"(,"x_sim":{"status":500,"delay_ms":20})");
  EXPECT_GT(RunLoad(options_).errors, 0);
}

}  // namespace
}  // namespace tollgate::bench
