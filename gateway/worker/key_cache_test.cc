// spec: reliability.md section 3, decisions.md 14.
#include "gateway/worker/key_cache.h"

#include <gtest/gtest.h>

#include "gateway/testing/pipeline_fakes.h"

namespace tollgate::gateway {
namespace {

constexpr int64_t kSecond = 1'000'000;

class Keys : public ::testing::Test {
 protected:
  Keys() : digest(KeyDigest(rig.key_text)) { Ping(); }

  Result<KeyPtr> Look() { return Look(digest); }
  Result<KeyPtr> Look(const std::string& which, const std::string& peer = "10.0.0.1") {
    Result<KeyPtr> found = KeyPtr();
    tollgate::testing::RunOn(rig.pool.loop(0), [&](Loop&) -> Task<int> {
      found = co_await rig.worker->keys->Look(which, peer);
      co_return 0;
    });
    return found;
  }
  void Ping() { Push({}); }
  void Push(const auth::v1::WatchKeysResponse& message) {
    rig.On([&](Loop&) { rig.worker->keys->OnChanges(message); });
  }
  void PushState(auth::v1::KeyState state, int64_t version) {
    auth::v1::WatchKeysResponse message;
    *message.add_changes()->mutable_key() = rig.key;
    message.mutable_changes(0)->mutable_key()->set_state(state);
    message.mutable_changes(0)->mutable_key()->set_version(version);
    Push(message);
  }
  // Time passes while auth's pings arrive.
  void Live(int64_t seconds) {
    for (int64_t i = 0; i < seconds; ++i) {
      rig.clock.Advance(kSecond);
      Ping();
    }
  }

  testing::Rig rig;
  const std::string digest;
};

TEST_F(Keys, AreLookedUpOnce) {
  for (int i = 0; i < 5; ++i) EXPECT_EQ((*Look())->key_id(), rig.key.key_id());
  EXPECT_EQ(rig.auth->calls, 1);
  EXPECT_EQ(rig.worker->keys->counters().hits, 4);
}

TEST_F(Keys, UnknownOnesAreRememberedForFiveSeconds) {
  EXPECT_EQ(*Look("nobody's digest"), nullptr);
  EXPECT_EQ(*Look("nobody's digest"), nullptr);
  EXPECT_EQ(rig.auth->calls, 1);
  Live(6);
  EXPECT_EQ(*Look("nobody's digest"), nullptr);
  EXPECT_EQ(rig.auth->calls, 2);
}

// H49.
TEST_F(Keys, AFloodOfUnknownOnesReachesAuthFiftyTimesASecond) {
  EXPECT_TRUE(Look().ok());
  const int before = rig.auth->calls;
  int refused = 0;
  const auto flood = [&](int from) {
    for (int i = 0; i < 300; ++i) {
      const auto result = Look("fake " + std::to_string(from + i), "10.6.6.6");
      if (result.ok()) {
        EXPECT_EQ(*result, nullptr);
        continue;
      }
      ++refused;  // nobody has looked, so it is not called unknown
      EXPECT_EQ(result.error().id, ErrorId::kServiceUnavailable);
      EXPECT_GT(result.error().retry_after_ms, 0);
    }
  };
  flood(0);
  EXPECT_EQ(rig.auth->calls - before, 200) << "the burst";
  Live(1);
  flood(1000);
  EXPECT_EQ(rig.auth->calls - before, 250);
  EXPECT_EQ(refused, 350);
  EXPECT_EQ(rig.worker->keys->counters().throttled, 350);
  // Known keys are served to the same peer, and other peers notice nothing.
  EXPECT_NE(*Look(digest, "10.6.6.6"), nullptr);
  EXPECT_EQ(*Look("another fake", "10.0.0.2"), nullptr);
}

TEST_F(Keys, LookUpsThatFindAKeyAreNotCounted) {
  for (int i = 0; i < 500; ++i) {
    const std::string good = "good " + std::to_string(i);
    rig.key.set_key_id(good);
    rig.On([&](Loop&) { rig.auth->keys[good] = rig.key; });
    const auto found = Look(good);
    ASSERT_TRUE(found.ok()) << i;
    ASSERT_NE(*found, nullptr);
  }
  EXPECT_EQ(rig.worker->keys->counters().throttled, 0);
}

TEST_F(Keys, ManyRequestsShareOneLookUp) {
  int found = 0;
  rig.On([&](Loop& loop) {
    rig.auth->gate.Reset();
    for (int i = 0; i < 10; ++i) {
      loop.Spawn([](std::shared_ptr<KeyCache> keys, std::string digest, int& found) -> Task<void> {
        const auto key = co_await keys->Look(digest, "10.0.0.1");
        if (key.ok() && *key != nullptr) ++found;
      }(rig.worker->keys, digest, found));
    }
  });
  rig.On([&](Loop&) {
    EXPECT_EQ(found, 0);
    rig.auth->gate.Set();
  });
  EXPECT_TRUE(Look().ok());
  rig.On([](Loop&) {});
  EXPECT_EQ(found, 10);
  EXPECT_EQ(rig.auth->calls, 1);
}

TEST_F(Keys, PushedChangesActAtOnce) {
  EXPECT_EQ((*Look())->state(), auth::v1::KEY_STATE_ACTIVE);
  PushState(auth::v1::KEY_STATE_DISABLED, 2);
  EXPECT_EQ((*Look())->state(), auth::v1::KEY_STATE_DISABLED);
  PushState(auth::v1::KEY_STATE_ACTIVE, 1);  // older: late
  EXPECT_EQ((*Look())->state(), auth::v1::KEY_STATE_DISABLED);
  EXPECT_EQ(rig.auth->calls, 1);
}

TEST_F(Keys, AChangeDuringTheLookUpIsNotUndoneByIt) {
  rig.On([&](Loop&) { rig.auth->gate.Reset(); });
  Result<KeyPtr> found = KeyPtr();
  bool done = false;
  rig.On([&](Loop& loop) {
    loop.Spawn([](std::shared_ptr<KeyCache> keys, std::string digest, Result<KeyPtr>& found,
                  bool& done) -> Task<void> {
      found = co_await keys->Look(digest, "10.0.0.1");
      done = true;
    }(rig.worker->keys, digest, found, done));
  });
  PushState(auth::v1::KEY_STATE_DISABLED, 2);
  rig.On([&](Loop&) { rig.auth->gate.Set(); });
  EXPECT_EQ((*Look())->state(), auth::v1::KEY_STATE_DISABLED);
  rig.On([&](Loop&) { EXPECT_TRUE(done); });
  EXPECT_EQ((*found)->state(), auth::v1::KEY_STATE_DISABLED);
}

TEST_F(Keys, AResetForgetsEverything) {
  EXPECT_TRUE(Look().ok());
  auth::v1::WatchKeysResponse reset;
  reset.set_reset(true);
  Push(reset);
  EXPECT_TRUE(Look().ok());
  EXPECT_EQ(rig.auth->calls, 2);
}

TEST_F(Keys, KeysInUseAreRefreshedInTheBackground) {
  EXPECT_TRUE(Look().ok());
  Live(25);
  EXPECT_TRUE(Look().ok());
  rig.On([](Loop&) {});
  EXPECT_EQ(rig.auth->calls, 2);
  EXPECT_EQ(rig.worker->keys->counters().hits, 1);
  Live(10);
  EXPECT_TRUE(Look().ok());
  EXPECT_EQ(rig.auth->calls, 2) << "35 s after the first look-up, 10 s after the second";
}

TEST_F(Keys, OldKeysAreLookedUpBeforeUse) {
  EXPECT_TRUE(Look().ok());
  Live(31);
  rig.key.set_state(auth::v1::KEY_STATE_DISABLED);
  rig.key.set_version(2);
  rig.Publish();
  EXPECT_EQ((*Look())->state(), auth::v1::KEY_STATE_DISABLED);
}

TEST_F(Keys, ASilentStreamMeansLookUpsOnUse) {
  EXPECT_TRUE(Look().ok());
  rig.clock.Advance(4 * kSecond);
  rig.key.set_state(auth::v1::KEY_STATE_DISABLED);
  rig.key.set_version(2);
  rig.Publish();
  EXPECT_EQ((*Look())->state(), auth::v1::KEY_STATE_DISABLED);
  EXPECT_EQ(rig.auth->calls, 2);
}

TEST_F(Keys, AnOutageIsBridgedForThirtySeconds) {
  EXPECT_TRUE(Look().ok());
  Live(10);
  rig.auth->down = true;
  rig.clock.Advance(29 * kSecond);
  const auto served = Look();
  ASSERT_TRUE(served.ok());
  EXPECT_EQ((*served)->key_id(), rig.key.key_id());
  EXPECT_EQ(rig.worker->keys->counters().stale, 1);
  rig.clock.Advance(2 * kSecond);
  const auto refused = Look();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().id, ErrorId::kServiceUnavailable);
  EXPECT_GT(refused.error().retry_after_ms, 0);
  EXPECT_FALSE(rig.worker->keys->InContact());
  // Back again.
  rig.auth->down = false;
  EXPECT_TRUE(Look().ok());
  EXPECT_TRUE(rig.worker->keys->InContact());
}

TEST_F(Keys, UnknownKeysInAnOutageAreNotRefusedAsUnknown) {
  rig.auth->down = true;
  const auto result = Look("some digest");
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().id, ErrorId::kServiceUnavailable);
}

TEST_F(Keys, AHangingAuthDelaysAKnownKeyOnlyBriefly) {
  EXPECT_TRUE(Look().ok());
  rig.clock.Advance(5 * kSecond);
  rig.On([&](Loop&) { rig.auth->gate.Reset(); });
  EXPECT_TRUE(Look().ok());
  EXPECT_EQ(rig.worker->keys->counters().stale, 1);
  rig.On([&](Loop&) { rig.auth->gate.Set(); });
  while (rig.auth->running > 0) rig.On([](Loop&) {});
}

TEST(SecondChanceMap, KeepsWhatIsUsed) {
  std::vector<int> evicted;
  SecondChanceMap<int> map(3, [&](const int& value) { evicted.push_back(value); });
  for (int i = 0; i < 3; ++i) map.Insert(std::to_string(i), i);
  ASSERT_NE(map.Find("0"), nullptr);
  map.Insert("3", 3);
  EXPECT_EQ(map.size(), 3u);
  EXPECT_NE(map.Find("0"), nullptr);
  EXPECT_EQ(map.Find("1"), nullptr);
  EXPECT_EQ(evicted, (std::vector<int>{1}));
  map.Erase("0");
  EXPECT_EQ(map.size(), 2u);
  for (int i = 10; i < 1000; ++i) map.Insert(std::to_string(i), i);
  EXPECT_EQ(map.size(), 3u);
}

}  // namespace
}  // namespace tollgate::gateway
