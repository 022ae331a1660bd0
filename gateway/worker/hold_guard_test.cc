#include "gateway/worker/hold_guard.h"

#include <gtest/gtest.h>

#include "gateway/testing/pipeline_fakes.h"

namespace tollgate::gateway {
namespace {

TEST(HoldGuard, VoidsUnlessDisarmed) {
  testing::Rig rig;
  rig.RunOnLoop([&](Loop&) {
    const Id id = Id::New();
    {
      HoldGuard dropped(*rig.billing, id, "ws1");
    }
    {
      HoldGuard taken(*rig.billing, Id::New(), "ws1");
      taken.Disarm();
    }
    {
      HoldGuard moved(*rig.billing, Id::New(), "ws1");
      HoldGuard to;
      to = std::move(moved);
    }
    ASSERT_EQ(rig.billing->voided.size(), 2u);
    EXPECT_EQ(rig.billing->voided[0].request_id(), id.ToBytes());
    EXPECT_EQ(rig.billing->voided[0].workspace_id(), "ws1");
  });
}

}  // namespace
}  // namespace tollgate::gateway
