#include "common/base/clock.h"

#include <gtest/gtest.h>

namespace tollgate {
namespace {

TEST(UtcCalendar, MonthAndDayAreUtc) {
  EXPECT_EQ(UtcMonth(1'735'689'599'999'999), 202412);  // 2024-12-31T23:59:59.999999Z
  EXPECT_EQ(UtcMonth(1'735'689'600'000'000), 202501);
  EXPECT_EQ(UtcMonthStartUs(202501), 1'735'689'600'000'000);
  EXPECT_EQ(UtcDay(0), 0);
  EXPECT_EQ(UtcDay(-1), -1);
}

}  // namespace
}  // namespace tollgate
