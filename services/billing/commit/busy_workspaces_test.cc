#include "services/billing/commit/busy_workspaces.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "services/billing/domain/testing/ledger_world.h"

namespace tollgate::billing {
namespace {

class BusyWorkspacesTest : public ::testing::Test {
 protected:
  // Counts the requests of one second.
  void Second(int begun, int ended, Deny denied_by = Deny::kNone) {
    std::vector<Operation> operations(static_cast<size_t>(begun),
                                      MakeAuthorize(TestId(1, kSecondUs), 1, 1));
    operations.insert(operations.end(), static_cast<size_t>(ended),
                      MakeSettle(TestId(1, kSecondUs), 1, 1));
    Applied applied;
    applied.replies.resize(operations.size());
    for (Reply& reply : applied.replies) {
      reply.ok = denied_by == Deny::kNone;
      reply.denied_by = denied_by;
    }
    busy_.OnBatch(operations, applied);
    now_us_ += kSecondUs;
    busy_.Tick(now_us_);
  }
  BusyWorkspaces busy_{100};
  int64_t now_us_ = 5 * kSecondUs;
};

TEST_F(BusyWorkspacesTest, TheRateOverAFewSecondsDecides) {
  for (int i = 0; i < 4; ++i) Second(100, 0);
  EXPECT_FALSE(busy_.IsBusy("ws")) << "not above the threshold";
  for (int i = 0; i < 3; ++i) Second(101, 0);
  EXPECT_TRUE(busy_.IsBusy("ws"));
  EXPECT_FALSE(busy_.IsBusy("other"));
}

TEST_F(BusyWorkspacesTest, RequestsThatOnlyEndHereCount) {
  for (int i = 0; i < 4; ++i) Second(10, 150);
  EXPECT_TRUE(busy_.IsBusy("ws"));
}

TEST_F(BusyWorkspacesTest, WhatWasRefusedDoesNotCount) {
  for (int i = 0; i < 4; ++i) Second(500, 0, Deny::kNoCredit);
  EXPECT_FALSE(busy_.IsBusy("ws"));
}

TEST_F(BusyWorkspacesTest, ItEndsWithThirtyQuietSeconds) {
  for (int i = 0; i < 4; ++i) Second(200, 0);
  ASSERT_TRUE(busy_.IsBusy("ws"));
  for (int i = 0; i < 40; ++i) Second(50, 0);
  EXPECT_TRUE(busy_.IsBusy("ws")) << "half the threshold is not quiet";
  for (int i = 0; i < 29; ++i) Second(10, 0);
  EXPECT_TRUE(busy_.IsBusy("ws"));
  for (int i = 0; i < 5; ++i) Second(10, 0);
  EXPECT_FALSE(busy_.IsBusy("ws"));
}

TEST(BusyWorkspaces, ZeroSwitchesItOff) {
  BusyWorkspaces off(0);
  off.Tick(kSecondUs);
  EXPECT_FALSE(off.IsBusy("ws"));
}

}  // namespace
}  // namespace tollgate::billing
