#include <gtest/gtest.h>

#include "services/billing/domain/testing/ledger_world.h"

namespace tollgate::billing {
namespace {

using ExtendTest = LedgerTest;

TEST_F(ExtendTest, ExtendsUpToTheAvailableCredit) {
  Credit(1000);
  const Id id = Open(100, 50);  // 200
  Reply reply = world.Do(MakeExtend(id, 1, 700));
  EXPECT_TRUE(reply.ok);
  EXPECT_EQ(reply.authorized_nano_usd, 700);
  const Id other = Open(100, 50);
  reply = world.Do(MakeExtend(id, 2, 1000));
  EXPECT_TRUE(reply.ok) << "granted in part, with a reason";
  EXPECT_EQ(reply.authorized_nano_usd, 800);
  EXPECT_EQ(reply.denied_by, Deny::kHeld);
  reply = world.Do(MakeExtend(id, 3, 1001));
  EXPECT_EQ(reply.denied_by, Deny::kNoCredit);
  ASSERT_TRUE(world.Do(MakeVoid(other)).ok);
  reply = world.Do(MakeExtend(id, 4, 1000));
  EXPECT_EQ(reply.authorized_nano_usd, 1000);
  EXPECT_EQ(reply.denied_by, Deny::kNone);
}

TEST_F(ExtendTest, ExtendsUpToTheCap) {
  Credit(10'000);
  ASSERT_TRUE(world.Do(MakeSetCap("cap", 500)).ok);
  const Id id = Open(100, 50);
  const Reply reply = world.Do(MakeExtend(id, 1, 600));
  EXPECT_EQ(reply.authorized_nano_usd, 500);
  EXPECT_EQ(reply.denied_by, Deny::kCap);
}

TEST_F(ExtendTest, OldSequencesReportNothing) {
  Credit(10'000);
  const Id id = Open();
  ASSERT_TRUE(world.Do(MakeHeartbeat(id, 5, 100, 50)).ok);
  EXPECT_TRUE(world.Do(MakeHeartbeat(id, 5, 100, 90)).ok);
  EXPECT_TRUE(world.Do(MakeHeartbeat(id, 4, 100, 90)).ok);
  EXPECT_EQ(world.hold(id).usage.completion, 50);
}

TEST_F(ExtendTest, AnExtensionOvertakenByAHeartbeatIsGranted) {
  Credit(10'000);
  const Id id = Open();
  ASSERT_TRUE(world.Do(MakeHeartbeat(id, 5, 100, 50)).ok);
  const Reply late = world.Do(MakeExtend(id, 3, 5000, 100, 20));
  EXPECT_TRUE(late.ok);
  EXPECT_EQ(late.denied_by, Deny::kNone) << "no other request holds the credit";
  EXPECT_EQ(late.authorized_nano_usd, 5000);
  EXPECT_EQ(world.hold(id).usage.completion, 50) << "the late report is older";
  EXPECT_EQ(world.hold(id).sequence, 5);
  const Reply lower = world.Do(MakeExtend(id, 4, 400));
  EXPECT_EQ(lower.authorized_nano_usd, 5000) << "a total is never lowered";
}

TEST_F(ExtendTest, UsageNeverDecreases) {
  Credit(10'000);
  const Id id = Open();
  world.Do(MakeHeartbeat(id, 1, 100, 50));
  world.Do(MakeHeartbeat(id, 2, 100, 40));
  EXPECT_EQ(world.hold(id).usage.completion, 50);
}

}  // namespace
}  // namespace tollgate::billing
