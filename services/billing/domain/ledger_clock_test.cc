// A clock that ran ahead dates entries in the future but affects no decision (docs/design/ledger.md
// 7).
#include "common/base/clock.h"
#include "common/base/time_units.h"
#include "services/billing/domain/testing/ledger_world.h"

namespace tollgate::billing {
namespace {

class ClockTest : public LedgerTest {
 protected:
  // Runs one operation in a process whose clock is ahead, then sets the right time again.
  void OneOperationAhead(int64_t us) {
    world.now_us += us;
    Credit(1);
    world.now_us -= us;
  }
  int64_t newest_us() { return world.last.entries.back().at_us; }
};

TEST_F(ClockTest, AnIdIsAsOldAsItIsByTheLedgersTime) {
  Credit(100'000);
  OneOperationAhead(30 * kDayUs);
  const Id id = world.NewId();
  EXPECT_TRUE(world.Do(MakeAuthorize(id, 100, 100)).ok) << "not 30 days old";
  EXPECT_TRUE(world.Do(MakeVoid(world.NewId())).ok);
}

TEST_F(ClockTest, EntriesNeverGoBackInTime) {
  Credit(100'000);
  OneOperationAhead(kHourUs);
  const int64_t ahead_us = world.wallet().clock_us;
  EXPECT_EQ(ahead_us, world.now_us + kHourUs);
  Open();
  EXPECT_EQ(newest_us(), ahead_us);
  world.now_us += 2 * kHourUs;
  Open();
  EXPECT_EQ(newest_us(), world.now_us);
}

TEST_F(ClockTest, HoldsLiveTheirTimeAndExpireInTime) {
  Credit(100'000);
  OneOperationAhead(kHourUs);
  const Id id = Open();
  EXPECT_EQ(world.hold(id).created_us, world.now_us);
  EXPECT_EQ(world.hold(id).expires_us, world.now_us + world.policy.hold_ttl_us);
  EXPECT_FALSE(world.Do(MakeExpire(id)).ok) << "the hold was just opened";
  world.now_us += 30 * kSecondUs;
  EXPECT_TRUE(world.Do(MakeHeartbeat(id, 1, 10, 10)).ok);
  EXPECT_EQ(world.hold(id).expires_us, world.now_us + world.policy.hold_ttl_us);
  world.now_us += 61 * kSecondUs;
  EXPECT_TRUE(world.Do(MakeExpire(id)).ok);
  EXPECT_EQ(world.hold(id).closed_us, world.now_us);
  world.now_us += 23 * kHourUs;
  EXPECT_TRUE(world.Do(MakeSettle(id, 10, 10)).ok) << "late, but within a day";
}

TEST_F(ClockTest, AMonthsCapIsNotResetEarly) {
  world.now_us = UtcMonthStartUs(202512) - 10 * kSecondUs;
  Credit(1'000'000);
  ASSERT_TRUE(world.Do(MakeSetCap("cap", 300)).ok);
  const Id id = Open();
  ASSERT_TRUE(world.Do(MakeSettle(id, 100, 100)).ok);
  OneOperationAhead(kHourUs);
  ASSERT_EQ(UtcMonth(world.wallet().clock_us), 202512);
  EXPECT_EQ(world.Do(MakeAuthorize(world.NewId(), 100, 100)).denied_by, Deny::kCap);
  world.now_us += 10 * kSecondUs;
  EXPECT_TRUE(world.Do(MakeAuthorize(world.NewId(), 100, 100)).ok);
}

TEST_F(ClockTest, ARepairSetsTheClockBackAndLeavesAnEntry) {
  Credit(100'000);
  OneOperationAhead(kHourUs);
  const Wallet before = world.wallet();
  const RepairClock repair{"ws", "repair", "anna", "time server"};
  const Reply reply = world.Do(repair);
  ASSERT_TRUE(reply.ok);
  EXPECT_EQ(reply.moved_back_us, kHourUs);
  ASSERT_EQ(world.last.entries.size(), 1U);
  const Entry& entry = world.last.entries[0];
  EXPECT_EQ(entry.kind, EntryKind::kClockRepair);
  EXPECT_EQ(static_cast<int>(entry.kind), 14);
  EXPECT_EQ(entry.sequence, before.sequence + 1);
  EXPECT_EQ(entry.amount_nano_usd, 0);
  EXPECT_EQ(entry.at_us, world.now_us);
  EXPECT_EQ(entry.memo, "moved back 3600000000 us, anna: time server");
  EXPECT_EQ(world.wallet().clock_us, world.now_us);
  EXPECT_EQ(world.wallet().paid_nano_usd, before.paid_nano_usd);
  Open();
  EXPECT_EQ(newest_us(), world.now_us);
  // A repetition changes nothing. Another command under the same id is refused.
  EXPECT_TRUE(world.Do(repair).ok);
  EXPECT_TRUE(world.last.entries.empty());
  EXPECT_EQ(world.Do(MakeAddCredit("repair", 5)).denied_by, Deny::kIdReuse);
}

TEST_F(ClockTest, ARepairOfARightClockWritesNothing) {
  Credit(100'000);
  const Reply reply = world.Do(RepairClock{"ws", "repair", "anna", ""});
  EXPECT_TRUE(reply.ok);
  EXPECT_EQ(reply.moved_back_us, 0);
  EXPECT_TRUE(world.last.entries.empty() && world.last.commands.empty());
  EXPECT_EQ(world.Do(RepairClock{"unknown", "repair", "anna", ""}).denied_by, Deny::kInvalid);
}

}  // namespace
}  // namespace tollgate::billing
