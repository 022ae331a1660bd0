#include "common/base/text.h"

#include <gtest/gtest.h>

namespace tollgate {
namespace {

TEST(IsValidUtf8, AcceptsEveryLengthAndItsBounds) {
  for (const char* text :
       {"", "a", "\x7F", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
        "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_TRUE(IsValidUtf8(text)) << text;
  }
}

TEST(IsValidUtf8, RejectsOverlongSurrogateTruncatedAndOutOfRange) {
  for (const char* text :
       {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xE2\x82", "ok\xFF",
        "\xC2"
        "a"}) {
    EXPECT_FALSE(IsValidUtf8(text));
  }
}

TEST(VisibleText, HasNoControlBidirectionalOrInvisibleCharacters) {
  for (const char* text : {"", "Anna M\u00fcller", "\u4f60\u597d", "\U0001f468\u200d\U0001f4bb",
                           "\u0645\u06cc\u200c\u062e", "x\u00a0y"}) {
    EXPECT_TRUE(IsVisibleText(text)) << text;
    EXPECT_EQ(WithoutInvisible(text, '?'), text);
  }
  for (const char* character :
       {"\n",     "\x1b",   "\x7f",   "\u0080", "\u009b",     "\u00ad", "\u061c",
        "\u180e", "\u200b", "\u200e", "\u2028", "\u2029",     "\u202e", "\u2060",
        "\u2066", "\u2069", "\ufeff", "\ufffb", "\U000e0041", "\xff",   "\xe2\x82"}) {
    const std::string text = std::string("a") + character + "b";
    EXPECT_FALSE(IsVisibleText(text)) << text;
    EXPECT_NE(WithoutInvisible(text, '?').find("a?"), std::string::npos) << text;
  }
}

TEST(ToValidUtf8, ReplacesInvalidBytesAndCutsBetweenCharacters) {
  EXPECT_EQ(ToValidUtf8("ok \xFF\xE2\x82 \xE2\x82\xAC", 100), "ok ??? \xE2\x82\xAC");
  EXPECT_EQ(ToValidUtf8("ab\xE2\x82\xAC", 5), "ab\xE2\x82\xAC");
  EXPECT_EQ(ToValidUtf8("ab\xE2\x82\xAC", 4), "ab");
  EXPECT_EQ(ToValidUtf8("", 0), "");
}

TEST(ClosestName, FindsTyposAndOtherSpellings) {
  const std::vector<std::string> names = {"listen", "max_body_bytes", "brand"};
  EXPECT_EQ(ClosestName("listn", names), "listen");
  EXPECT_EQ(ClosestName("lisetn", names), "listen");
  EXPECT_EQ(ClosestName("maxBodyBytes", names), "max_body_bytes");
  EXPECT_EQ(ClosestName("Brand", names), "brand");
}

TEST(ClosestName, IsEmptyWhenNothingIsClose) {
  EXPECT_EQ(ClosestName("zzzz", {"listen", "brand"}), "");
  EXPECT_EQ(ClosestName("x", {}), "");
}

}  // namespace
}  // namespace tollgate
