#include "gateway/worker/slot.h"

#include <gtest/gtest.h>

#include "gateway/testing/pipeline_fakes.h"

namespace tollgate::gateway {
namespace {

Slot AskedSlot(testing::Rig& rig, const char* id, bool limits_concurrency = true) {
  ratelimit::v1::RenewItem item;
  item.set_lease_id(id);
  return Slot(*rig.worker->slots, std::move(item), limits_concurrency);
}

Slot MakeSlot(testing::Rig& rig, const char* id, bool limits_concurrency = true) {
  Slot slot = AskedSlot(rig, id, limits_concurrency);
  slot.KeepAlive();
  return slot;
}

TEST(Slot, IsReleasedOnEveryPath) {
  testing::Rig rig;
  tollgate::testing::RunOn(rig.pool.loop(0), [&](Loop&) -> Task<int> {
    {
      Slot dropped = MakeSlot(rig, "dropped");
    }
    {
      Slot finished = MakeSlot(rig, "finished");
      co_await finished.Finish(12);
      co_await finished.Refund();  // no effect: already released
    }
    {
      Slot refunded = MakeSlot(rig, "refunded");
      co_await refunded.Refund();
    }
    {
      Slot denied = MakeSlot(rig, "denied");
      denied.Disarm();
    }
    {
      Slot first = MakeSlot(rig, "moved");
      Slot second = std::move(first);
      EXPECT_EQ(rig.worker->slots->size(), 1u);
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
  EXPECT_EQ(rig.worker->slots->size(), 0u);
}

TEST(Slot, WaitsForTheLimiterWhenALimitOnConcurrencyCountsIt) {
  testing::Rig rig;
  tollgate::testing::RunOn(rig.pool.loop(0), [&](Loop& loop) -> Task<int> {
    rig.limiter->release_applied = std::make_shared<Event>(loop);
    const auto applied = rig.limiter->release_applied;
    Slot unbounded = MakeSlot(rig, "unbounded", false);
    co_await unbounded.Finish(1);  // no limit counts it, so it does not wait

    const auto released = std::make_shared<bool>(false);
    loop.RunAfter(20, [applied, released] {
      *released = true;
      applied->Set();
    });
    Slot slot = MakeSlot(rig, "slot");
    co_await slot.Finish(1);
    EXPECT_TRUE(*released) << "Finish waits until the slot is free";

    // A limiter that does not respond delays a request only briefly.
    applied->Reset();
    Slot refused = MakeSlot(rig, "refused", false);
    co_await refused.Refund();
    applied->Set();
    rig.limiter->release_applied.reset();
    co_return 0;
  });
  EXPECT_EQ(rig.limiter->released.size(), 3u);
}

// The limiter would restore a slot that it has not granted yet, and so grant it above the limit.
TEST(Slot, IsNotRenewedBeforeItIsGranted) {
  testing::Rig rig;
  tollgate::testing::RunOn(rig.pool.loop(0), [&](Loop& loop) -> Task<int> {
    Slot granted = MakeSlot(rig, "granted");
    Slot asked = AskedSlot(rig, "asked");
    Event renewed(loop);
    rig.limiter->on_renew = [&] { renewed.Set(); };
    EXPECT_TRUE(co_await renewed.WaitFor(60'000));
    rig.limiter->on_renew = nullptr;
    co_return 0;
  });
  ASSERT_FALSE(rig.limiter->renewed.empty());
  for (const auto& slots : rig.limiter->renewed) {
    ASSERT_EQ(slots.size(), 1u);
    EXPECT_EQ(slots[0].lease_id(), "granted");
  }
  EXPECT_EQ(rig.limiter->released.size(), 2u) << "the limiter may have granted it";
}

// A limiter that lost its state counts the running requests again. A request that ended during the
// renewal must not hold its slot until it expires.
TEST(Slot, ASlotThatWasRestoredAfterItsEndIsReleased) {
  testing::Rig rig;
  tollgate::testing::RunOn(rig.pool.loop(0), [&](Loop& loop) -> Task<int> {
    Slot stays = MakeSlot(rig, "stays");
    auto ends = std::make_unique<Slot>(MakeSlot(rig, "ends"));
    Event renewed(loop);
    rig.limiter->restored = {"stays", "ends"};
    rig.limiter->on_renew = [&] {
      ends.reset();  // the release reaches the limiter before the renewal
      renewed.Set();
    };
    const int64_t from_us = SystemClock::Get().MonotonicUs();
    EXPECT_TRUE(co_await renewed.WaitFor(60'000));
    // Renewals run every 3 s, and an unrenewed slot expires after 9 s. The slack is for a busy
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
