// The caches of the loops of one gateway. See docs/design/keys.md 4, decision 14.
#include "gateway/worker/key_cache.h"

#include <gtest/gtest.h>

#include "gateway/testing/key_cache_fixture.h"

namespace tollgate::gateway {
namespace {

// The rig's cache finds keys; the other one cannot reach auth, so that it has only what it is told.
class KeyPeersTest : public testing::KeyCacheTest {
 protected:
  void SetUp() override {
    rig.RunOnLoop([&](Loop& loop) {
      auth_ = std::make_unique<testing::FakeAuth>(loop);
      auth_->down = true;
      other_ = std::make_shared<KeyCache>(
          loop, rig.clock, *auth_,
          std::make_shared<AddressLimiter>(KeyCache::kUnknownKeysPerAddress), 2);
      rig.worker->keys->ShareWith({{&loop, other_}});
      rig.auth->version = 1;
    });
    auth::v1::WatchKeysResponse first;
    first.set_version(1);
    PushToBoth(first);
  }
  void TearDown() override {
    rig.RunOnLoop([&](Loop&) {
      other_->Stop();
      other_.reset();
    });
    rig.RunOnLoop([&](Loop&) { auth_.reset(); });
  }
  void PushToBoth(const auth::v1::WatchKeysResponse& message) {
    Push(message);
    PushToOther(message);
  }
  void PushToOther(const auth::v1::WatchKeysResponse& message) {
    rig.RunOnLoop([&](Loop&) { other_->OnChanges(message); });
  }
  // The rig's key in this state, as a message of the stream.
  auth::v1::WatchKeysResponse Changed(auth::v1::KeyState state, int64_t version) {
    auth::v1::WatchKeysResponse message;
    message.set_version(version);
    auth::v1::Key& key = *message.add_changes()->mutable_key();
    key = rig.key;
    key.set_state(state);
    key.set_version(version);
    return message;
  }
  Result<KeyPtr> GetFromOther() {
    Result<KeyPtr> found = KeyPtr();
    tollgate::testing::RunOn(rig.pool.loop(0), [&](Loop& loop) -> Task<int> {
      // After what was posted to the other cache before.
      Event posted(loop);
      loop.Post([&posted] { posted.Set(); });
      co_await posted.Wait();
      found = co_await other_->Get(digest, "10.0.0.1");
      co_return 0;
    });
    return found;
  }

  std::unique_ptr<testing::FakeAuth> auth_;
  std::shared_ptr<KeyCache> other_;
};

TEST_F(KeyPeersTest, AKeyThatOneLoopHasSeenIsServedByTheOthersWhileAuthIsAway) {
  EXPECT_FALSE(GetFromOther().ok());
  EXPECT_TRUE(Get().ok());
  rig.auth->down = true;
  rig.clock.Advance(29 * kSecondUs);
  const auto served = GetFromOther();
  ASSERT_TRUE(served.ok()) << served.error().ToString();
  EXPECT_EQ((*served)->key_id(), rig.key.key_id());
  rig.clock.Advance(2 * kSecondUs);
  EXPECT_FALSE(GetFromOther().ok()) << "30 s after the look-up, as on the loop that made it";
}

TEST_F(KeyPeersTest, AChangeThatTheOtherLoopHasAppliedIsKept) {
  PushToOther(Changed(auth::v1::KEY_STATE_DISABLED, 2));
  EXPECT_EQ((*Get())->state(), auth::v1::KEY_STATE_ACTIVE) << "this loop does not know it yet";
  const auto found = GetFromOther();
  ASSERT_TRUE(found.ok());
  EXPECT_EQ((*found)->state(), auth::v1::KEY_STATE_DISABLED);
}

TEST_F(KeyPeersTest, LaterChangesApplyToWhatAnotherLoopFound) {
  EXPECT_TRUE(Get().ok());
  PushToBoth(Changed(auth::v1::KEY_STATE_REVOKED, 2));
  const auto found = GetFromOther();
  ASSERT_TRUE(found.ok());
  EXPECT_EQ((*found)->state(), auth::v1::KEY_STATE_REVOKED);
}

TEST_F(KeyPeersTest, WhatWasReadBeforeAResetIsNotTaken) {
  auth::v1::WatchKeysResponse reset;
  reset.set_reset(true);
  reset.set_version(1);
  PushToOther(reset);
  EXPECT_TRUE(Get().ok());
  EXPECT_FALSE(GetFromOther().ok());
}

}  // namespace
}  // namespace tollgate::gateway
