// How the ledger books requests that a router has admitted from its lease.
#include <gtest/gtest.h>

#include "services/billing/domain/testing/lease_world.h"

namespace tollgate::billing {
namespace {

using AdmissionTest = LeaseTest;

TEST_F(AdmissionTest, TheHoldComesOutOfTheLease) {
  Credit(100'000);
  Take(0, 5000);
  const Id id = world.NewId();
  const Reply reply = world.Do(Admitted(id, 400, 150));
  ASSERT_TRUE(reply.ok);
  EXPECT_EQ(reply.charged_nano_usd, 150);
  EXPECT_EQ(Find()->used_nano_usd, 400);
  EXPECT_EQ(world.wallet().held_nano_usd, 600);
  EXPECT_EQ(world.hold(id).state, HoldState::kSettled);
  EXPECT_EQ(world.hold(id).authorized_nano_usd, 400);
  std::vector<EntryKind> kinds;
  for (const Entry& entry : world.last.entries) kinds.push_back(entry.kind);
  EXPECT_EQ(kinds, (std::vector{EntryKind::kLeaseReturn, EntryKind::kHold, EntryKind::kSettle,
                                EntryKind::kCharge}));
}

TEST_F(AdmissionTest, RepeatingItChangesNothing) {
  Credit(100'000);
  Take(0, 5000);
  const Settle settle = Admitted(world.NewId(), 400, 150);
  const Reply first = world.Do(settle);
  EXPECT_EQ(world.Do(settle), first);
  EXPECT_TRUE(world.last.entries.empty());
  EXPECT_EQ(Find()->used_nano_usd, 400);
  // A different body under the same id changes nothing.
  Settle other = settle;
  other.admission = MakeAdmission(settle.request_id, 151, 400, Month());
  EXPECT_EQ(world.Do(other).denied_by, Deny::kIdReuse);
}

TEST_F(AdmissionTest, AHeartbeatOpensTheHoldAndTheSettleFindsIt) {
  Credit(100'000);
  Take(0, 5000);
  const Id id = world.NewId();
  Heartbeat alive = MakeHeartbeat(id, 1, 100, 5);
  alive.admission = MakeAdmission(id, 100, 400, Month());
  ASSERT_TRUE(world.Do(alive).ok);
  EXPECT_EQ(world.hold(id).state, HoldState::kOpen);
  EXPECT_EQ(world.wallet().held_nano_usd, 1000);
  EXPECT_EQ(world.Do(MakeSettle(id, 100, 10)).charged_nano_usd, 120);
  EXPECT_EQ(world.wallet().held_nano_usd, 600);
}

TEST_F(AdmissionTest, WithoutALeaseCreditCoversIt) {
  Credit(1000);
  const Id id = world.NewId();
  EXPECT_EQ(world.Do(Admitted(id, 400, 300)).charged_nano_usd, 300);
  EXPECT_EQ(world.hold(id).authorized_nano_usd, 400);
}

TEST_F(AdmissionTest, WhatNothingCoversIsOverrun) {
  Credit(200);
  const Id id = world.NewId();
  EXPECT_EQ(world.Do(Admitted(id, 400, 300)).charged_nano_usd, 200);
  EXPECT_EQ(world.hold(id).overrun_nano_usd, 100);
  EXPECT_EQ(world.wallet().posted_nano_usd(), 0);
}

TEST_F(AdmissionTest, NeitherFreezeNorCapStopWhatHasRun) {
  Credit(100'000);
  Take(0, 5000);
  world.Do(MakeSetCap("cap", 100));
  world.state.wallets["ws"].frozen = Freeze::kOperator;
  const Id id = world.NewId();
  const Reply reply = world.Do(Admitted(id, 400, 300));
  EXPECT_EQ(reply.charged_nano_usd, 300) << "the lease reserved it under the earlier cap";
  EXPECT_EQ(world.hold(id).overrun_nano_usd, 0);
  world.state.wallets["ws"].frozen = Freeze::kNone;
}

TEST_F(AdmissionTest, ATombstoneClosesItAndFreesTheLease) {
  Credit(100'000);
  Take(0, 5000);
  const Id id = world.NewId();
  world.now_us += 600 * kSecondUs;  // an outage
  ASSERT_TRUE(world.Do(MakeVoid(id, true)).ok);
  const Settle settle = Admitted(id, 400, 300);
  EXPECT_EQ(world.Do(settle).denied_by, Deny::kClosed);
  EXPECT_EQ(world.Do(settle).denied_by, Deny::kClosed);
  EXPECT_EQ(Find()->used_nano_usd, 400) << "once";
  EXPECT_EQ(world.wallet().held_nano_usd, 600);
  EXPECT_EQ(world.wallet().posted_nano_usd(), 100'000);
}

TEST_F(AdmissionTest, ALaterTryClosesTheEarlierOne) {
  Credit(100'000);
  Take(0, 5000);
  const Id id = world.NewId();
  Authorize again = MakeAuthorize(id, 300, 100);
  again.attempt = 1;
  ASSERT_TRUE(world.Do(again).ok);
  EXPECT_EQ(world.Do(Admitted(id, 400, 300)).denied_by, Deny::kClosed);
  EXPECT_EQ(world.hold(id).state, HoldState::kOpen);
  EXPECT_TRUE(world.last.dead_letters.empty());
  world.Do(MakeVoid(id));
}

TEST_F(AdmissionTest, ATryOnAnotherRouterTakesTheHoldOver) {
  Credit(100'000);
  Take(0, 5000);
  Take(0, 5000, "second");
  const Id id = world.NewId();
  Heartbeat alive = MakeHeartbeat(id, 1, 300, 5);
  alive.admission = MakeAdmission(id, 300, 400, Month());
  ASSERT_TRUE(world.Do(alive).ok);
  auto next = *MakeAdmission(id, 300, 500, Month(), "second");
  next.authorize.attempt = 1;
  Settle settle = MakeSettle(id, 300, 0);
  settle.attempt = 1;
  settle.admission = std::make_shared<const Admission>(next);
  EXPECT_EQ(world.Do(settle).charged_nano_usd, 300);
  EXPECT_EQ(Find()->used_nano_usd, 400);
  EXPECT_EQ(Find("second")->used_nano_usd, 500);
  EXPECT_EQ(world.hold(id).authorized_nano_usd, 500);
}

TEST_F(AdmissionTest, CountsTowardsTheMonthOfItsLease) {
  world.now_us = UtcMonthStartUs(202512) - 60 * kSecondUs;
  Credit(100'000);
  Take(0, 5000);
  world.now_us += 2 * kHourUs;
  const Id id = world.NewId();
  ASSERT_TRUE(world.Do(Admitted(id, 400, 300, 202511)).ok);
  EXPECT_EQ(world.hold(id).month, 202511);
  EXPECT_EQ(UtcMonth(world.hold(id).created_us), 202511);
  EXPECT_EQ(world.state.months[MonthKey("ws", 202511)].spent_nano_usd, 300);
  // A month that accepts no more corrections: the request counts towards the current month.
  world.now_us += 30 * kHourUs;
  const Id late = world.NewId();
  ASSERT_TRUE(world.Do(Admitted(late, 400, 300, 202511)).ok);
  EXPECT_EQ(world.hold(late).month, 202512);
}

TEST_F(AdmissionTest, WhatGatewaysDoNotSendIsRefused) {
  Credit(100'000);
  Take(0, 5000);
  const auto refused = [&](auto change) {
    Settle op = Admitted(world.NewId(), 400, 300);
    Admission admission = *op.admission;
    change(admission);
    op.admission = std::make_shared<const Admission>(admission);
    return world.Do(op).denied_by;
  };
  EXPECT_EQ(refused([](Admission&) {}), Deny::kNone);
  EXPECT_EQ(refused([](Admission& a) { a.authorize.key_quota_nano_usd = 5; }), Deny::kInvalid);
  EXPECT_EQ(refused([](Admission& a) { a.authorize.check_only = true; }), Deny::kInvalid);
  EXPECT_EQ(refused([](Admission& a) { a.authorize.fallbacks = {{"m", kTestRates, 1, 1, 1}}; }),
            Deny::kInvalid);
  EXPECT_EQ(refused([](Admission& a) {
              a.authorize.idempotency_key_digest = a.authorize.idempotency_body_digest =
                  std::string(32, 'x');
            }),
            Deny::kInvalid);
  EXPECT_EQ(refused([](Admission& a) { a.authorized_nano_usd = -1; }), Deny::kInvalid);
  EXPECT_EQ(refused([](Admission& a) { a.authorize.workspace = "other"; }), Deny::kInvalid);
  EXPECT_EQ(refused([](Admission& a) { a.month = 0; }), Deny::kInvalid);
}

}  // namespace
}  // namespace tollgate::billing
