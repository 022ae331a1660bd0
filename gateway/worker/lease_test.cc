#include "gateway/worker/lease.h"

#include <gtest/gtest.h>

#include "gateway/testing/pipeline_fakes.h"

namespace tollgate::gateway {
namespace {

Lease AskedLease(testing::Rig& rig, const char* id, bool limits_concurrency = true) {
  ratelimit::v1::RenewItem item;
  item.set_lease_id(id);
  return Lease(*rig.worker->leases, std::move(item), limits_concurrency);
}

Lease MakeLease(testing::Rig& rig, const char* id, bool limits_concurrency = true) {
  Lease lease = AskedLease(rig, id, limits_concurrency);
  lease.KeepAlive();
  return lease;
}

TEST(Lease, IsReleasedOnEveryPath) {
  testing::Rig rig;
  tollgate::testing::RunOn(rig.pool.loop(0), [&](Loop&) -> Task<int> {
    {
      Lease dropped = MakeLease(rig, "dropped");
    }
    {
      Lease finished = MakeLease(rig, "finished");
      co_await finished.Finish(12);
      co_await finished.Refund();  // no effect: already released
    }
    {
      Lease refunded = MakeLease(rig, "refunded");
      co_await refunded.Refund();
    }
    {
      Lease denied = MakeLease(rig, "denied");
      denied.Disarm();
    }
    {
      Lease first = MakeLease(rig, "moved");
      Lease second = std::move(first);
      EXPECT_EQ(rig.worker->leases->size(), 1u);
    }
    co_return 0;
  });
  ASSERT_EQ(rig.limiter->released.size(), 4u);
  EXPECT_TRUE(rig.limiter->released[0].refund());
  EXPECT_FALSE(rig.limiter->released[1].refund());
  EXPECT_EQ(rig.limiter->released[1].actual_tokens(), 12);
  EXPECT_EQ(rig.limiter->released[2].lease_id(), "refunded");
  EXPECT_TRUE(rig.limiter->released[2].refund());
  EXPECT_EQ(rig.limiter->released[3].lease_id(), "moved");
  EXPECT_EQ(rig.worker->leases->size(), 0u);
}

TEST(Lease, WaitsForTheLimiterWhenASlotIsReleased) {
  testing::Rig rig;
  tollgate::testing::RunOn(rig.pool.loop(0), [&](Loop& loop) -> Task<int> {
    rig.limiter->release_applied = std::make_shared<Event>(loop);
    const auto applied = rig.limiter->release_applied;
    Lease unbounded = MakeLease(rig, "unbounded", false);
    co_await unbounded.Finish(1);  // holds no slot, so it does not wait

    const auto released = std::make_shared<bool>(false);
    loop.RunAfter(20, [applied, released] {
      *released = true;
      applied->Set();
    });
    Lease slot = MakeLease(rig, "slot");
    co_await slot.Finish(1);
    EXPECT_TRUE(*released) << "Finish waits until the slot is free";

    // A limiter that does not respond delays a request only briefly.
    applied->Reset();
    Lease refused = MakeLease(rig, "refused", false);
    co_await refused.Refund();
    applied->Set();
    rig.limiter->release_applied.reset();
    co_return 0;
  });
  EXPECT_EQ(rig.limiter->released.size(), 3u);
}

// The limiter would restore a lease that it has not granted yet, and so grant it above the limit.
TEST(Lease, IsNotRenewedBeforeItIsGranted) {
  testing::Rig rig;
  tollgate::testing::RunOn(rig.pool.loop(0), [&](Loop& loop) -> Task<int> {
    Lease granted = MakeLease(rig, "granted");
    Lease asked = AskedLease(rig, "asked");
    Event renewed(loop);
    rig.limiter->on_renew = [&] { renewed.Set(); };
    EXPECT_TRUE(co_await renewed.WaitFor(60'000));
    rig.limiter->on_renew = nullptr;
    co_return 0;
  });
  ASSERT_FALSE(rig.limiter->renewed.empty());
  for (const auto& leases : rig.limiter->renewed) {
    ASSERT_EQ(leases.size(), 1u);
    EXPECT_EQ(leases[0].lease_id(), "granted");
  }
  EXPECT_EQ(rig.limiter->released.size(), 2u) << "the limiter may have granted it";
}

// A limiter that lost its state counts the running requests again. A request that ended during the
// renewal must not hold a slot until the lease expires.
TEST(Lease, ALeaseThatWasRestoredAfterItsEndIsReleased) {
  testing::Rig rig;
  tollgate::testing::RunOn(rig.pool.loop(0), [&](Loop& loop) -> Task<int> {
    Lease stays = MakeLease(rig, "stays");
    auto ends = std::make_unique<Lease>(MakeLease(rig, "ends"));
    Event renewed(loop);
    rig.limiter->restored = {"stays", "ends"};
    rig.limiter->on_renew = [&] {
      ends.reset();  // the release reaches the limiter before the renewal
      renewed.Set();
    };
    const int64_t from_us = SystemClock::Get().MonotonicUs();
    EXPECT_TRUE(co_await renewed.WaitFor(60'000));
    // Renewals run every 3 s, and an unrenewed lease expires after 9 s. The slack is for a busy
    // machine.
    EXPECT_LT(SystemClock::Get().MonotonicUs() - from_us, 9'000'000);
    rig.limiter->on_renew = nullptr;
    while (rig.limiter->released.size() < 2) co_await loop.Sleep(1);
    co_await stays.Refund();
    co_return 0;
  });
  std::vector<std::string> released;
  for (const auto& item : rig.limiter->released) released.push_back(item.lease_id());
  EXPECT_EQ(released, (std::vector<std::string>{"ends", "ends", "stays"}));
  ASSERT_FALSE(rig.limiter->renewed.empty());
  EXPECT_EQ(rig.limiter->renewed[0].size(), 2u);
}

}  // namespace
}  // namespace tollgate::gateway
