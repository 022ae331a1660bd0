#include "common/base/text.h"

#include <gtest/gtest.h>

namespace tollgate {
namespace {

TEST(Utf8, AcceptsEveryLengthAndTheirBorders) {
  for (const char* text :
       {"", "a", "\x7F", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
        "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_TRUE(IsValidUtf8(text)) << text;
  }
}

TEST(Utf8, RefusesOverlongSurrogateTruncatedAndTooHigh) {
  for (const char* text :
       {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xE2\x82", "ok\xFF",
        "\xC2"
        "a"}) {
    EXPECT_FALSE(IsValidUtf8(text));
  }
}

TEST(ClosestName, FindsSmallSlipsAndOtherSpellings) {
  const std::vector<std::string> names = {"listen", "max_body_bytes", "brand"};
  EXPECT_EQ(ClosestName("listn", names), "listen");
  EXPECT_EQ(ClosestName("lisetn", names), "listen");
  EXPECT_EQ(ClosestName("maxBodyBytes", names), "max_body_bytes");
  EXPECT_EQ(ClosestName("Brand", names), "brand");
}

TEST(ClosestName, SaysNothingWhenNothingIsClose) {
  EXPECT_EQ(ClosestName("zzzz", {"listen", "brand"}), "");
  EXPECT_EQ(ClosestName("x", {}), "");
}

}  // namespace
}  // namespace tollgate
