// Leases on credit (docs/adr/0042).
#include <gtest/gtest.h>

#include <memory>

#include "services/billing/domain/testing/ledger_history.h"
#include "services/billing/domain/testing/ledger_world.h"

namespace tollgate::billing {
namespace {

constexpr int32_t kMonth = 202511;
constexpr int64_t kCredit = 1'000'000;

class LeaseTest : public LedgerTest {
 protected:
  Reply Take(int64_t wanted, int64_t used = 0, int32_t month = kMonth,
             const std::string& lessee = "loop-1", int64_t settled = 0) {
    return world.Do(TakeLease{"ws", lessee, month, used, wanted, settled});
  }
  Reply TakeSettled(int64_t wanted, int64_t settled) {
    return Take(wanted, settled, kMonth, "loop-1", settled);
  }
  const Lease* lease(const std::string& lessee = "loop-1") {
    const auto found = world.state.leases.find(LeaseKey({"ws", lessee, kMonth}));
    return found == world.state.leases.end() ? nullptr : &found->second;
  }
  std::shared_ptr<const Admission> Admitted(const Id& id, int64_t amount, int32_t attempt = 0) {
    Admission admission;
    admission.authorize = MakeAuthorize(id, 100, 100);
    admission.authorize.attempt = attempt;
    admission.lessee = "loop-1";
    admission.month = kMonth;
    admission.authorized_nano_usd = amount;
    return std::make_shared<const Admission>(std::move(admission));
  }
  // Settlement of a request that the ledger does not know yet: 100 + 2 * 50 nano-USD.
  Settle Whole(const Id& id, int64_t amount = 200) {
    Settle op = MakeSettle(id, 100, 50);
    op.admission = Admitted(id, amount);
    return op;
  }
};

TEST_F(LeaseTest, ReservesAtMostOneHundredthOfTheCredit) {
  Credit(kCredit);
  const Reply small = Take(300, 0, 0);
  ASSERT_TRUE(small.ok);
  EXPECT_EQ(small.lease.month, kMonth);
  EXPECT_EQ(small.lease.granted_nano_usd, 300);
  EXPECT_EQ(small.lease.valid_ms, 50'000);
  EXPECT_FALSE(small.lease.recalled);
  EXPECT_EQ(world.wallet().held_nano_usd, 300);
  EXPECT_EQ(world.month().held_nano_usd, 300);
  EXPECT_EQ(Take(kCredit).lease.granted_nano_usd, kCredit / 100);
  EXPECT_EQ(Take(1).lease.granted_nano_usd, kCredit / 100) << "the lessee that asks loses nothing";
  EXPECT_EQ(world.wallet().held_nano_usd, kCredit / 100);
}

TEST_F(LeaseTest, ManyLesseesReserveHalfOfTheCreditAtMost) {
  Credit(kCredit);
  for (int i = 0; i < 200; ++i) {
    const std::string lessee = "loop-" + std::to_string(i);
    EXPECT_TRUE(Take(kCredit, 0, 0, lessee).ok);
  }
  EXPECT_LE(world.wallet().held_nano_usd, kCredit / 2);
  EXPECT_GE(world.wallet().available_nano_usd(), 0);
}

TEST_F(LeaseTest, TheCapIsRespected) {
  Credit(kCredit);
  ASSERT_TRUE(world.Do(MakeSetCap("cap", 10'000)).ok);
  EXPECT_EQ(Take(kCredit, 0, 0).lease.granted_nano_usd, 100);
  ASSERT_TRUE(world.Do(MakeSetCap("none left", 0)).ok);
  EXPECT_TRUE(Take(kCredit).lease.recalled);
  EXPECT_EQ(lease()->granted_nano_usd, 100);
}

TEST_F(LeaseTest, ASettlementOpensItsHoldOutOfTheLease) {
  Credit(kCredit);
  ASSERT_TRUE(Take(5'000, 0, 0).ok);
  const Id id = world.NewId();
  const Reply settled = world.Do(Whole(id));
  ASSERT_TRUE(settled.ok);
  EXPECT_EQ(settled.charged_nano_usd, 200);
  EXPECT_EQ(world.hold(id).state, HoldState::kSettled);
  EXPECT_EQ(lease()->used_nano_usd, 200);
  EXPECT_EQ(world.wallet().posted_nano_usd(), kCredit - 200);
  EXPECT_EQ(world.wallet().held_nano_usd, 4'800);
  const Reply again = world.Do(Whole(id));
  EXPECT_TRUE(again.ok);
  EXPECT_EQ(again.charged_nano_usd, 200);
  EXPECT_EQ(lease()->used_nano_usd, 200) << "once";
  // The lessee has used 200, and gets the full amount that it asks for beyond that.
  EXPECT_EQ(Take(5'000, 200).lease.granted_nano_usd, 5'200);
}

TEST_F(LeaseTest, AHeartbeatOpensItAndALaterSettlementEndsIt) {
  Credit(kCredit);
  ASSERT_TRUE(Take(5'000, 0, 0).ok);
  const Id id = world.NewId();
  Heartbeat heartbeat = MakeHeartbeat(id, 1, 100, 10);
  heartbeat.admission = Admitted(id, 300);
  ASSERT_TRUE(world.Do(heartbeat).ok);
  EXPECT_EQ(world.hold(id).authorized_nano_usd, 300);
  EXPECT_EQ(world.wallet().held_nano_usd, 5'000);
  ASSERT_TRUE(world.Do(MakeSettle(id, 100, 50)).ok);
  EXPECT_EQ(world.wallet().held_nano_usd, 4'700) << "the unused rest is available";
}

// The request has run: the operator pays what credit does not cover.
TEST_F(LeaseTest, WithoutItsLeaseAnAdmittedRequestIsBookedAllTheSame) {
  Credit(150);
  const Id id = world.NewId();
  const Reply settled = world.Do(Whole(id));
  ASSERT_TRUE(settled.ok);
  EXPECT_EQ(settled.charged_nano_usd, 150);
  EXPECT_EQ(world.hold(id).overrun_nano_usd, 50);
  EXPECT_EQ(world.wallet().posted_nano_usd(), 0);
}

TEST_F(LeaseTest, WhatWasRefusedToItsCallerStaysFree) {
  Credit(kCredit);
  ASSERT_TRUE(Take(5'000, 0, 0).ok);
  const Id id = world.NewId();
  ASSERT_TRUE(world.Do(MakeVoid(id, true)).ok);
  EXPECT_EQ(world.Do(Whole(id)).denied_by, Deny::kClosed);
  EXPECT_EQ(world.Do(Whole(id)).denied_by, Deny::kClosed);
  EXPECT_EQ(world.wallet().posted_nano_usd(), kCredit);
  EXPECT_EQ(lease()->used_nano_usd, 200) << "the router counts it as used, once";
}

// The gateway lost the router and sent the request to another one.
TEST_F(LeaseTest, AnEarlierTryIsRefused) {
  Credit(kCredit);
  ASSERT_TRUE(Take(5'000, 0, 0).ok);
  const Id id = world.NewId();
  Authorize second = MakeAuthorize(id, 100, 100);
  second.attempt = 1;
  ASSERT_TRUE(world.Do(second).ok);
  EXPECT_EQ(world.Do(Whole(id)).denied_by, Deny::kClosed);
  Settle settle = MakeSettle(id, 100, 50);
  settle.attempt = 1;
  EXPECT_TRUE(world.Do(settle).ok);
  EXPECT_EQ(world.wallet().posted_nano_usd(), kCredit - 200);
}

// The call that placed the hold got no answer, so the gateway asked a router with a lease.
TEST_F(LeaseTest, ARequestWhoseHoldExistedDoesNotStayReserved) {
  Credit(kCredit);
  ASSERT_TRUE(Take(5'000, 0, 0).ok);
  const Id id = world.NewId();
  ASSERT_TRUE(world.Do(MakeAuthorize(id, 100, 100)).ok);
  ASSERT_TRUE(world.Do(Whole(id)).ok);
  EXPECT_EQ(TakeSettled(5'000, 200).lease.granted_nano_usd, 5'200);
  EXPECT_EQ(lease()->used_nano_usd, 200);
  EXPECT_EQ(world.wallet().held_nano_usd, 5'000) << "what the lessee may still spend";
  EXPECT_TRUE(TakeSettled(0, 200).ok);
  EXPECT_EQ(lease(), nullptr);
  EXPECT_EQ(world.wallet().held_nano_usd, 0);
}

TEST_F(LeaseTest, ATryThatAnotherTookOverDoesNotStayReserved) {
  Credit(kCredit);
  ASSERT_TRUE(Take(5'000, 0, 0).ok);
  const Id id = world.NewId();
  Authorize second = MakeAuthorize(id, 100, 100);
  second.attempt = 1;
  ASSERT_TRUE(world.Do(second).ok);
  EXPECT_EQ(world.Do(Whole(id)).denied_by, Deny::kClosed);
  ASSERT_TRUE(world.Do(MakeVoid(id, true)).ok);
  EXPECT_TRUE(TakeSettled(0, 200).ok);
  EXPECT_EQ(world.wallet().held_nano_usd, 0);
}

// The ledger's own count is ahead of what the lessee has been told.
TEST_F(LeaseTest, WhatTheLedgerTookIsNotReleasedTwice) {
  Credit(kCredit);
  ASSERT_TRUE(Take(5'000, 0, 0).ok);
  ASSERT_TRUE(world.Do(Whole(world.NewId(), 300)).ok);
  ASSERT_TRUE(world.Do(Whole(world.NewId(), 300)).ok);
  EXPECT_TRUE(Take(1, 900, kMonth, "loop-1", 300).ok);
  EXPECT_EQ(lease()->used_nano_usd, 600) << "300 more run";
  EXPECT_EQ(lease()->reserved_nano_usd(), 4'400);
  EXPECT_EQ(Take(1, 600, kMonth, "loop-1", 601).denied_by, Deny::kInvalid);
}

TEST_F(LeaseTest, ALateReportKeepsTheTimeOfItsAdmission) {
  Credit(kCredit);
  ASSERT_TRUE(Take(5'000, 0, 0).ok);
  const Id id = world.NewId();
  const int64_t admitted_us = world.now_us;
  world.now_us += 50 * kSecondUs;
  ASSERT_TRUE(world.Do(Whole(id)).ok);
  EXPECT_EQ(world.hold(id).created_us / 1000, admitted_us / 1000);
  // A gateway's clock may be ahead of the ledger's.
  const Id ahead = TestId(7, world.now_us + 60 * kSecondUs);
  ASSERT_TRUE(world.Do(Whole(ahead)).ok);
  EXPECT_EQ(world.hold(ahead).created_us, world.now_us);
}

TEST_F(LeaseTest, WhatIsGivenBackIsAvailableAndWhatRunsStaysReserved) {
  Credit(kCredit);
  ASSERT_TRUE(Take(5'000, 0, 0).ok);
  EXPECT_EQ(Take(0, 300).lease.granted_nano_usd, 300);
  EXPECT_EQ(world.wallet().held_nano_usd, 300);
  ASSERT_TRUE(world.Do(Whole(world.NewId(), 300)).ok);
  EXPECT_EQ(world.wallet().held_nano_usd, 0);
}

TEST_F(LeaseTest, ExpiresWhenItWasNotRenewed) {
  Credit(kCredit);
  ASSERT_TRUE(Take(5'000, 0, 0).ok);
  world.now_us += 59 * kSecondUs;
  EXPECT_FALSE(world.Do(ExpireLease{"ws", "loop-1", kMonth}).ok);
  ASSERT_TRUE(Take(5'000).ok);
  world.now_us += 59 * kSecondUs;
  EXPECT_FALSE(world.Do(ExpireLease{"ws", "loop-1", kMonth}).ok) << "renewed";
  world.now_us += 2 * kSecondUs;
  EXPECT_TRUE(world.Do(ExpireLease{"ws", "loop-1", kMonth}).ok);
  EXPECT_EQ(lease(), nullptr);
  EXPECT_EQ(world.wallet().held_nano_usd, 0);
}

TEST_F(LeaseTest, NoneReachesIntoTheNextMonth) {
  Credit(kCredit);
  const int64_t end_us = UtcMonthStartUs(202512);
  world.now_us = end_us - 30 * kSecondUs;
  const Reply taken = Take(5'000, 0, 0);
  ASSERT_TRUE(taken.ok);
  EXPECT_EQ(taken.lease.valid_ms, 20'000);
  world.now_us = end_us - 10 * kSecondUs;
  EXPECT_EQ(Take(5'000).denied_by, Deny::kNoLease);
  // Reported in the next month, but charged to its own month.
  const Id id = world.NewId();
  world.now_us = end_us + kSecondUs;
  ASSERT_TRUE(world.Do(Whole(id)).ok);
  EXPECT_EQ(world.hold(id).month, kMonth);
  const Reply next = Take(5'000, 200);
  ASSERT_TRUE(next.ok);
  EXPECT_EQ(next.lease.month, 202512);
  EXPECT_EQ(next.lease.granted_nano_usd, 5'000) << "a new lease with nothing used";
}

TEST_F(LeaseTest, AFrozenWalletGrantsNothingAndTakesBack) {
  Credit(kCredit);
  ASSERT_TRUE(Take(5'000, 0, 0).ok);
  Correct freeze;
  freeze.workspace = "ws";
  freeze.command_id = "freeze";
  freeze.kind = CommandKind::kFreeze;
  freeze.actor = "ann";
  freeze.reason = "test";
  ASSERT_TRUE(world.Do(freeze).ok);
  EXPECT_EQ(Take(9'000).denied_by, Deny::kFrozen);
  EXPECT_TRUE(Take(0).ok);
  EXPECT_EQ(world.wallet().held_nano_usd, 0);
}

// Random operations in random order, including leases, never break an invariant.
TEST(LeaseHistoryTest, NoHistoryBreaksAnInvariant) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    World world;
    History history(seed, true);
    for (int i = 0; i < 1'500; ++i) {
      world.now_us = history.NextTime();
      world.Do(history.NextOperation());
      ASSERT_TRUE(world.last.violations.empty())
          << "seed " << seed << ": " << world.last.violations.front();
      for (const auto& [name, wallet] : world.state.wallets) {
        ASSERT_GE(wallet.available_nano_usd(), 0) << "seed " << seed << ", operation " << i;
      }
    }
    for (const auto& [name, wallet] : world.state.wallets) {
      int64_t held = 0;
      for (const auto& [id, hold] : world.state.holds) {
        if (hold.workspace == name && hold.state == HoldState::kOpen) {
          held += hold.authorized_nano_usd;
        }
      }
      for (const auto& [key, lease] : world.state.leases) {
        if (lease.workspace == name) held += lease.reserved_nano_usd();
      }
      EXPECT_EQ(wallet.held_nano_usd, held) << "seed " << seed << ", " << name;
    }
  }
}

}  // namespace
}  // namespace tollgate::billing
