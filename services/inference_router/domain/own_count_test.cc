#include "services/inference_router/domain/own_count.h"

#include <gtest/gtest.h>

namespace tollgate::inference_router {
namespace {

TEST(DecodedBytes, CountsUtf8BytesOfEscapedText) {
  EXPECT_EQ(DecodedBytes(""), 0);
  EXPECT_EQ(DecodedBytes("hello"), 5);
  EXPECT_EQ(DecodedBytes(R"(a\nb\"c\\)"), 6);
  EXPECT_EQ(DecodedBytes(R"(\u0041\u00e9\u4e2d)"), 1 + 2 + 3);
  EXPECT_EQ(DecodedBytes(R"(\ud83d\ude00)"), 4);
  EXPECT_EQ(DecodedBytes("\xc3\xa9"), 2);
  EXPECT_EQ(DecodedBytes(R"(\u00)"), 3) << "a truncated escape must not be read past its end";
}

TEST(OwnCount, ToolCallsCountNamesArgumentsAndDelimiters) {
  OwnCount own(1);
  inference::v1::Delta delta;
  auto* call = delta.add_tool_calls();
  call->set_name_json("get_weather");
  call->set_arguments_json(R"({\"a\":1})");
  own.Add(delta);
  EXPECT_EQ(own.chunks(), 1);
  EXPECT_EQ(own.bound(), 11 + 7 + OwnCount::kTokensPerChoice + OwnCount::kTokensPerToolCall);
}

}  // namespace
}  // namespace tollgate::inference_router
