#include <gtest/gtest.h>

#include "services/billing/domain/testing/ledger_world.h"

namespace tollgate::billing {
namespace {

using VoidTest = LedgerTest;

TEST_F(VoidTest, AVoidReleasesTheHoldAndALaterSettleIsRefused) {
  Credit(1000);
  const Id id = Open();
  EXPECT_TRUE(world.Do(MakeVoid(id)).ok);
  EXPECT_TRUE(world.Do(MakeVoid(id)).ok);
  EXPECT_EQ(world.Do(MakeSettle(id, 100, 10)).denied_by, Deny::kClosed);
  EXPECT_EQ(world.Do(MakeHeartbeat(id, 1, 1, 1)).denied_by, Deny::kClosed);
  EXPECT_EQ(world.Do(MakeAuthorize(id, 100, 100)).denied_by, Deny::kClosed);
  EXPECT_EQ(world.wallet().available_nano_usd(), 1000);
  const Id settled = Open();
  ASSERT_TRUE(world.Do(MakeSettle(settled, 10, 0)).ok);
  const Reply late = world.Do(MakeVoid(settled));
  EXPECT_EQ(late.denied_by, Deny::kClosed);
  EXPECT_EQ(late.charged_nano_usd, 10);
}

TEST_F(VoidTest, AVoidBeforeItsAuthorizeLeavesATombstone) {
  Credit(1000);
  const Id id = world.NewId();
  EXPECT_TRUE(world.Do(MakeVoid(id)).ok);
  EXPECT_EQ(world.Do(MakeAuthorize(id, 100, 100)).denied_by, Deny::kClosed);
  EXPECT_TRUE(world.Do(MakeVoid(id)).ok);
  EXPECT_EQ(world.wallet().held_nano_usd, 0);
}

}  // namespace
}  // namespace tollgate::billing
