#include "tests/bench/answer_reader.h"

#include <gtest/gtest.h>

#include "tests/bench/load.h"

namespace tollgate::bench {
namespace {

TEST(AnswerReaderTest, CountsEventsWithEverySplitOfTheBytes) {
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

TEST(AnswerReaderTest, GapsAreBetweenEventsOfOneStreamWithinTheWindow) {
  LoadReport report;
  AnswerReader reader;
  reader.Start(0);
  const auto take = [&](std::string_view bytes, int64_t now_us, bool counts) {
    EXPECT_EQ(reader.Take(bytes, now_us, counts, report), AnswerReader::State::kMore);
  };
  take("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 1000\r\n\r\n", 1'000,
       false);
  take("data: {\"delta\":{\"content\":\"a\"}}\n\n", 10'000, false);
  take("data: {\"delta\":{\"content\":\"b\"}}\n\n", 30'000, true);
  take("data: {\"delta\":{\"content\"", 40'000, true);
  take(":\"c\"}}\n\ndata: {}\n\n", 50'000, true);
  EXPECT_EQ(report.events, 3);
  EXPECT_EQ(report.gap.count(), 3);
  EXPECT_NEAR(static_cast<double>(report.gap.Percentile(0.99)), 20'000, 20);
  EXPECT_EQ(report.gap.Percentile(0), 0);
  EXPECT_EQ(report.first_token.count(), 0) << "it was before the window";
}

}  // namespace
}  // namespace tollgate::bench
