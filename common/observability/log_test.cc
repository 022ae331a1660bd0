#include "common/observability/log.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <regex>
#include <sstream>
#include <thread>
#include <vector>

namespace tollgate::log {
namespace {

TEST(Write, LinesOfConcurrentThreadsDoNotInterleave) {
  testing::internal::CaptureStderr();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 200; ++i) Info("line", {{"thread", t}, {"text", std::string(300, 'x')}});
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::istringstream captured(testing::internal::GetCapturedStderr());
  const std::regex whole(
      R"(\{"time":"[^"]+","level":"info","process":"[^"]+","message":"line","thread":[0-3],"text":"x{300}"\})");
  std::string line;
  int lines = 0;
  while (std::getline(captured, line)) {
    ++lines;
    EXPECT_TRUE(std::regex_match(line, whole)) << line;
  }
  EXPECT_EQ(lines, 800);
}

TEST(Write, LevelSuppressesLowerRecords) {
  SetLevel(Level::kWarn);
  testing::internal::CaptureStderr();
  Info("hidden");
  Warn("shown");
  const std::string captured = testing::internal::GetCapturedStderr();
  SetLevel(Level::kInfo);
  EXPECT_EQ(captured.find("hidden"), std::string::npos);
  EXPECT_NE(captured.find("shown"), std::string::npos);
}

TEST(Writer, WritesEveryLineBeforeStopReturns) {
  testing::internal::CaptureStderr();
  StartWriter();
  for (int i = 0; i < 500; ++i) Info("queued", {{"number", i}});
  EXPECT_TRUE(StopWriter());
  Info("after");
  std::istringstream captured(testing::internal::GetCapturedStderr());
  std::string line;
  for (int i = 0; i < 500; ++i) {
    std::getline(captured, line);
    EXPECT_TRUE(line.ends_with("\"number\":" + std::to_string(i) + "}")) << line;
  }
  std::getline(captured, line);
  EXPECT_NE(line.find("after"), std::string::npos) << line;
}

// A failed flush of the outbox and an uncaught exception log a line and abort.
TEST(WriterDeathTest, TheLinesBeforeAnAbortAreWritten) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        StartWriter();
        Error("last words");
        std::abort();
      },
      testing::KilledBySignal(SIGABRT), "last words");
}

}  // namespace
}  // namespace tollgate::log
