// traceparent by the W3C rules: any deviation makes it invalid, so that no client text reaches an
// engine or a span.
#include "common/tracing/trace_context.h"

#include <gtest/gtest.h>

#include <set>

namespace tollgate::tracing {
namespace {

constexpr char kGood[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

TEST(TraceContext, AWellFormedTraceparentIsReadAndWrittenAgain) {
  const auto context = ParseTraceparent(kGood);
  ASSERT_TRUE(context);
  EXPECT_EQ(context->TraceIdHex(), "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(context->span_id, 0x00f067aa0ba902b7U);
  EXPECT_TRUE(context->sampled);
  EXPECT_EQ(FormatTraceparent(*context), kGood);
}

TEST(TraceContext, OnlyTheSampledFlagIsReadAndWritten) {
  const std::string start(kGood, 53);
  EXPECT_FALSE(ParseTraceparent(start + "00")->sampled);
  EXPECT_FALSE(ParseTraceparent(start + "fe")->sampled);
  const auto context = ParseTraceparent(start + "ff");
  EXPECT_TRUE(context->sampled);
  EXPECT_EQ(FormatTraceparent(*context), start + "01");
}

TEST(TraceContext, AnythingElseIsNone) {
  const std::string good = kGood;
  std::vector<std::string> bad = {
      "",
      good.substr(0, 54),
      good + "0",
      good + "-",
      good + "-00",
      " " + good,
      good + " ",
      "ff" + good.substr(2),  // an invalid version
      "0" + good,
      "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
      "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
      "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
      "00-4bf92f3577b34da6a3ce929d0e0e4736-00F067AA0BA902B7-01",
      std::string(55, '-'),
      std::string(55, '0'),
  };
  // Replaces each character by an invalid one.
  for (size_t i = 0; i < good.size(); ++i) {
    for (const char c : {'g', '_', '\0', '\x80'}) {
      std::string one = good;
      one[i] = c;
      bad.push_back(one);
    }
  }
  for (const std::string& text : bad) EXPECT_FALSE(ParseTraceparent(text)) << text;
}

TEST(TraceContext, OfALaterVersionTheKnownPartIsReadAndPassedOnAsVersion00) {
  const std::string later = "cc" + std::string(kGood + 2);
  ASSERT_TRUE(ParseTraceparent(later));
  ASSERT_TRUE(ParseTraceparent(later + "-what-the-future-will-be-like"));
  EXPECT_FALSE(ParseTraceparent(later + ".what"));
  EXPECT_EQ(FormatTraceparent(*ParseTraceparent(later + "-x")), kGood);
}

TEST(TraceContext, SpanIdsDifferAndAreNeverZero) {
  std::set<SpanId> ids = {0};
  for (int i = 0; i < 10'000; ++i) EXPECT_TRUE(ids.insert(NewSpanId()).second);
  const SpanId parent = NewSpanId();
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(ids.insert(ChildSpanId(parent, i)).second);
  EXPECT_EQ(ChildSpanId(parent, 3), ChildSpanId(parent, 3));
}

}  // namespace
}  // namespace tollgate::tracing
