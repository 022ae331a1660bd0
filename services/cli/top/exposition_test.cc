#include "services/cli/top/exposition.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tollgate::cli {
namespace {

TEST(Exposition, ReadsSamplesWithAndWithoutLabels) {
  const auto metrics = Exposition::Parse(
      "# HELP a_total Things.\n# TYPE a_total counter\n"
      "a_total{code=\"200\",path=\"/x,{y}\"} 3\n"
      "a_total{code=\"500\",path=\"a\\\"b\\\\c\\nd\"} 4.5 1700000000000\n"
      "b 1.5e3\nb_bucket{le=\"+Inf\"} +Inf\n");
  EXPECT_EQ(metrics.Sum("a_total"), 7.5);
  EXPECT_EQ(metrics.Sum("a_total", [](const Labels& l) { return l.at("path") == "/x,{y}"; }), 3);
  EXPECT_EQ(metrics.Sum("a_total", [](const Labels& l) { return l.at("path") == "a\"b\\c\nd"; }),
            4.5);
  EXPECT_EQ(metrics.Sum("b"), 1500);
  EXPECT_TRUE(std::isinf(metrics.Sum("b_bucket")));
  EXPECT_FALSE(metrics.Has("c"));
  EXPECT_EQ(metrics.Sum("c"), 0);
}

TEST(Exposition, WhatIsNoSampleIsPassedOver) {
  const auto metrics = Exposition::Parse("<html>\nx\ny{a=\"1\ny{\ny{a=\ny{a=\"\nz nothing\n\nok 1");
  EXPECT_FALSE(metrics.Has("x"));
  EXPECT_FALSE(metrics.Has("y"));
  EXPECT_FALSE(metrics.Has("z"));
  EXPECT_EQ(metrics.Sum("ok"), 1);
}

}  // namespace
}  // namespace tollgate::cli
