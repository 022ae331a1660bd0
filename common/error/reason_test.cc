#include "common/error/reason.h"

#include <gtest/gtest.h>

#include <set>
#include <string_view>

namespace tollgate {
namespace {

TEST(Reason, NamesAreUniqueAndSelectTheirReason) {
  std::set<std::string_view> names;
  for (int i = 0; i < kReasonCount; ++i) {
    const auto reason = static_cast<Reason>(i);
    EXPECT_TRUE(names.insert(NameOf(reason)).second) << NameOf(reason);
    EXPECT_EQ(NameOf(reason).empty(), reason == Reason::kNone);
    EXPECT_EQ(ReasonByName(NameOf(reason)), reason);
  }
}

TEST(Reason, AnUnknownNameIsNoReason) { EXPECT_EQ(ReasonByName("a_later_version"), Reason::kNone); }

}  // namespace
}  // namespace tollgate
