#include "common/base/ascii.h"

#include <gtest/gtest.h>

#include <cctype>

namespace tollgate {
namespace {

TEST(Ascii, ClassesAgreeWithTheCLocale) {
  for (int i = 0; i < 256; ++i) {
    const char c = static_cast<char>(i);
    EXPECT_EQ(IsDigit(c), i < 128 && std::isdigit(i) != 0) << i;
    EXPECT_EQ(IsLower(c), i < 128 && std::islower(i) != 0) << i;
    EXPECT_EQ(IsUpper(c), i < 128 && std::isupper(i) != 0) << i;
    EXPECT_EQ(IsAlnum(c), i < 128 && std::isalnum(i) != 0) << i;
    EXPECT_EQ(HexValue(c) >= 0, i < 128 && std::isxdigit(i) != 0) << i;
  }
  EXPECT_EQ(HexValue('9'), 9);
  EXPECT_EQ(HexValue('a'), 10);
  EXPECT_EQ(HexValue('F'), 15);
}

}  // namespace
}  // namespace tollgate
