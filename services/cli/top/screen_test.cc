#include "services/cli/top/screen.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tollgate::cli {
namespace {

size_t Columns(const ScreenLine& line) {
  size_t columns = 0;
  for (const Span& span : line) {
    columns += static_cast<size_t>(std::ranges::count_if(
        span.text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
  }
  return columns;
}

Figures Busy(int engines, int processes) {
  Figures figures;
  figures.seconds = 10;
  figures.requests_per_second = {1234.5, 2, 31, 0, 0.4};
  figures.first_token_p50 = 0.123;
  figures.first_token_p99 = 6.5;
  figures.charged_nano_usd_per_second = 1'234'567;
  for (int i = 0; i < engines; ++i) {
    figures.engines.push_back({.id = "engine-" + std::to_string(i),
                               .up = 1,
                               .routers = 1,
                               .running = static_cast<double>(i),
                               .most = 64});
  }
  for (int i = 0; i < processes; ++i) {
    figures.processes.push_back({.name = "gateway",
                                 .address = "10.0.0.1:" + std::to_string(i),
                                 .version = "1.0",
                                 .answers = true});
  }
  return figures;
}

TEST(Screen, FitsEverySize) {
  for (const int engines : {0, 1, 5, 100}) {
    for (const int processes : {1, 9, 50}) {
      for (const auto& [width, height] :
           std::vector<std::pair<int, int>>{{80, 24}, {40, 12}, {200, 60}, {20, 5}, {1, 1}}) {
        const View view{.width = width, .height = height};
        const auto lines = Draw(Busy(engines, processes), view);
        EXPECT_LE(lines.size(), static_cast<size_t>(std::max(height, 2)))
            << engines << " engines, " << processes << " processes";
        for (const ScreenLine& line : lines) {
          EXPECT_LE(Columns(line), static_cast<size_t>(std::max(width, 20)));
        }
      }
    }
  }
}

TEST(Screen, AFewEnginesAndProcessesAreAllShownAt80Columns24Lines) {
  const std::string text = AsText(Draw(Busy(3, 4), {}));
  for (const char* shown :
       {"engine-0", "engine-2", "10.0.0.1:0", "10.0.0.1:3", "all/s 1,268", "limited/s 31",
        "5xx/s 0.40", "p50 123 ms", "p99 6.50 s", "per s $0.001235", "quit"}) {
    EXPECT_NE(text.find(shown), std::string::npos) << shown << "\n" << text;
  }
}

TEST(Screen, MoreEnginesThanFitAreReachedByScrolling) {
  View view;
  EXPECT_NE(AsText(Draw(Busy(50, 1), view)).find("of 50 engines"), std::string::npos);
  view.first_engine = 1000;
  EXPECT_NE(AsText(Draw(Busy(50, 1), view)).find("engine-9"), std::string::npos)
      << "the last by name";
}

TEST(Screen, WhatIsWrongStandsOut) {
  Figures figures = Busy(2, 1);
  figures.engines[1].up = 0;
  figures.dead_letters = 3;
  bool down = false, letters = false;
  for (const ScreenLine& line : Draw(figures, {})) {
    for (const Span& span : line) {
      down = down || (span.style == Style::kBad && span.text.find("DOWN") != std::string::npos);
      letters = letters || (span.style == Style::kBad && span.text == "3");
    }
  }
  EXPECT_TRUE(down);
  EXPECT_TRUE(letters);
}

TEST(Screen, NamesCannotWriteToTheTerminal) {
  Figures figures = Busy(1, 1);
  figures.engines[0].id = "x\033[2J";
  EXPECT_EQ(AsText(Draw(figures, {})).find('\033'), std::string::npos);
}

TEST(Screen, NumbersTakeSixCharactersAtMost) {
  EXPECT_EQ(Short(0), "0");
  EXPECT_EQ(Short(0.25), "0.25");
  EXPECT_EQ(Short(7), "7");
  EXPECT_EQ(Short(12.34), "12.3");
  EXPECT_EQ(Short(999.4), "999");
  EXPECT_EQ(Short(1234.5), "1,235");
  EXPECT_EQ(Short(12'345), "12.3k");
  EXPECT_EQ(Short(999'999), "1.00M");
  EXPECT_EQ(Short(12'345'678), "12.3M");
  for (double value = 0.001; value < 1e12; value *= 1.7)
    EXPECT_LE(Short(value).size(), 6U) << value;
}

}  // namespace
}  // namespace tollgate::cli
