#include "gateway/worker/hold_guard.h"

#include <gtest/gtest.h>

#include "gateway/testing/pipeline_fakes.h"

namespace tollgate::gateway {
namespace {

TEST(HoldGuard, VoidsUnlessARouterHasIt) {
  testing::Rig rig;
  rig.RunOnLoop([&](Loop&) {
    const Id id = Id::New();
    {
      HoldGuard dropped(*rig.billing, id, "ws1");
    }
    {
      HoldGuard taken(*rig.billing, Id::New(), "ws1");
      taken.HandOver();
      HoldGuard denied(*rig.billing, Id::New(), "ws1");
      denied.Disarm();
    }
    {
      HoldGuard moved(*rig.billing, Id::New(), "ws1");
      HoldGuard to;
      to = std::move(moved);
    }
    ASSERT_EQ(rig.billing->voided.size(), 2u);
    EXPECT_EQ(rig.billing->voided[0].request_id(), id.ToBytes());
    EXPECT_EQ(rig.billing->voided[0].workspace_id(), "ws1");
    EXPECT_TRUE(rig.billing->voided[0].refused());
  });
}

TEST(HoldGuard, ARefusalVoidsAlsoWhatARouterHasOnce) {
  testing::Rig rig;
  rig.RunOnLoop([&](Loop&) {
    {
      HoldGuard taken(*rig.billing, Id::New(), "ws1");
      taken.HandOver();
      HoldGuard moved = std::move(taken);
      moved.Refuse("the link was lost");
    }
    ASSERT_EQ(rig.billing->voided.size(), 1u);
    EXPECT_TRUE(rig.billing->voided[0].refused());
    HoldGuard unused(*rig.billing, Id::New(), "ws1");
    unused.Release("max_tokens is 0");
    EXPECT_FALSE(rig.billing->voided.back().refused());
  });
}

}  // namespace
}  // namespace tollgate::gateway
