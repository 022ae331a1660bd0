#include "common/base/result.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace tollgate {
namespace {

using TextResult = BasicResult<std::unique_ptr<int>, std::string>;

TEST(ResultTest, HoldsAMoveOnlyValue) {
  TextResult result = std::make_unique<int>(7);
  ASSERT_TRUE(result.ok());
  std::unique_ptr<int> value = std::move(result).value();
  EXPECT_EQ(*value, 7);
}

TEST(ResultTest, HoldsAnError) {
  TextResult result = Fail{std::string("no")};
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error(), "no");
}

TEST(ResultTest, DistinguishesValueAndErrorOfTheSameType) {
  BasicResult<std::string, std::string> good = std::string("x");
  BasicResult<std::string, std::string> bad = Fail{std::string("x")};
  EXPECT_TRUE(good.ok());
  EXPECT_FALSE(bad.ok());
}

TEST(ResultTest, AVoidResultIsOkByDefault) {
  BasicResult<void, std::string> good;
  BasicResult<void, std::string> bad = Fail{std::string("no")};
  EXPECT_TRUE(good.ok());
  EXPECT_EQ(bad.error(), "no");
}

}  // namespace
}  // namespace tollgate
