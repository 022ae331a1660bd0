// See docs/design/keys.md 4, decision 14.
#include "gateway/worker/key_cache.h"

#include <gtest/gtest.h>

#include <functional>

#include "gateway/testing/key_cache_fixture.h"

namespace tollgate::gateway {
namespace {

using testing::KeyCacheTest;

TEST_F(KeyCacheTest, IsLookedUpOnce) {
  for (int i = 0; i < 5; ++i) EXPECT_EQ((*Get())->key_id(), rig.key.key_id());
  EXPECT_EQ(rig.auth->calls, 1);
  EXPECT_EQ(rig.worker->keys->counters().hits, 4);
}

TEST_F(KeyCacheTest, UnknownKeysAreCachedForFiveSeconds) {
  EXPECT_EQ(*Get("unknown digest"), nullptr);
  EXPECT_EQ(*Get("unknown digest"), nullptr);
  EXPECT_EQ(rig.auth->calls, 1);
  AdvanceLive(6);
  EXPECT_EQ(*Get("unknown digest"), nullptr);
  EXPECT_EQ(rig.auth->calls, 2);
}

// H49.
TEST_F(KeyCacheTest, UnknownKeyLookupsAreLimitedPerAddress) {
  EXPECT_TRUE(Get().ok());
  const int before = rig.auth->calls;
  int refused = 0;
  const auto flood = [&](int from) {
    for (int i = 0; i < 300; ++i) {
      const auto result = Get("fake " + std::to_string(from + i), "10.6.6.6");
      if (result.ok()) {
        EXPECT_EQ(*result, nullptr);
        continue;
      }
      ++refused;  // 503, not 401: the key was not looked up
      EXPECT_EQ(result.error().id, ErrorId::kServiceUnavailable);
      EXPECT_GT(result.error().retry_after_ms, 0);
    }
  };
  flood(0);
  EXPECT_EQ(rig.auth->calls - before, 200) << "the burst";
  AdvanceLive(1);
  flood(1000);
  EXPECT_EQ(rig.auth->calls - before, 250);
  EXPECT_EQ(refused, 350);
  EXPECT_EQ(rig.worker->keys->counters().throttled, 350);
  // Cached keys are still served to this address, and other addresses are not limited.
  EXPECT_NE(*Get(digest, "10.6.6.6"), nullptr);
  EXPECT_EQ(*Get("another fake", "10.0.0.2"), nullptr);
}

TEST_F(KeyCacheTest, LookupsThatFindAKeyAreNotLimited) {
  for (int i = 0; i < 500; ++i) {
    const std::string good = "good " + std::to_string(i);
    rig.key.set_key_id(good);
    rig.RunOnLoop([&](Loop&) { rig.auth->keys[good] = rig.key; });
    const auto found = Get(good);
    ASSERT_TRUE(found.ok()) << i;
    ASSERT_NE(*found, nullptr);
  }
  EXPECT_EQ(rig.worker->keys->counters().throttled, 0);
}

TEST_F(KeyCacheTest, ConcurrentRequestsShareOneLookup) {
  int found = 0;
  rig.RunOnLoop([&](Loop& loop) {
    rig.auth->gate.Reset();
    for (int i = 0; i < 10; ++i) {
      loop.Spawn([](std::shared_ptr<KeyCache> keys, std::string digest, int& found) -> Task<void> {
        const auto key = co_await keys->Get(digest, "10.0.0.1");
        if (key.ok() && *key != nullptr) ++found;
      }(rig.worker->keys, digest, found));
    }
  });
  rig.RunOnLoop([&](Loop&) {
    EXPECT_EQ(found, 0);
    rig.auth->gate.Set();
  });
  EXPECT_TRUE(Get().ok());
  rig.RunOnLoop([](Loop&) {});
  EXPECT_EQ(found, 10);
  EXPECT_EQ(rig.auth->calls, 1);
}

TEST_F(KeyCacheTest, PushedChangesApplyAtOnce) {
  EXPECT_EQ((*Get())->state(), auth::v1::KEY_STATE_ACTIVE);
  PushState(auth::v1::KEY_STATE_DISABLED, 2);
  EXPECT_EQ((*Get())->state(), auth::v1::KEY_STATE_DISABLED);
  PushState(auth::v1::KEY_STATE_ACTIVE, 1);  // an older version that arrives late
  EXPECT_EQ((*Get())->state(), auth::v1::KEY_STATE_DISABLED);
  EXPECT_EQ(rig.auth->calls, 1);
}

TEST_F(KeyCacheTest, AChangeDuringALookupIsKept) {
  rig.RunOnLoop([&](Loop&) { rig.auth->gate.Reset(); });
  Result<KeyPtr> found = KeyPtr();
  bool done = false;
  rig.RunOnLoop([&](Loop& loop) {
    loop.Spawn([](std::shared_ptr<KeyCache> keys, std::string digest, Result<KeyPtr>& found,
                  bool& done) -> Task<void> {
      found = co_await keys->Get(digest, "10.0.0.1");
      done = true;
    }(rig.worker->keys, digest, found, done));
  });
  PushState(auth::v1::KEY_STATE_DISABLED, 2);
  rig.RunOnLoop([&](Loop&) { rig.auth->gate.Set(); });
  EXPECT_EQ((*Get())->state(), auth::v1::KEY_STATE_DISABLED);
  rig.RunOnLoop([&](Loop&) { EXPECT_TRUE(done); });
  EXPECT_EQ((*found)->state(), auth::v1::KEY_STATE_DISABLED);
}

// The filter of live keys (ADR 0013), which contains the rig's key.
class KeyFilterTest : public KeyCacheTest {
 protected:
  void SetUp() override {
    filter->Add(Tag(digest));
    auto live = std::make_shared<LiveFilter>(filter, kTagKey);
    rig.RunOnLoop([&](Loop&) {
      rig.worker->keys->SetFilter(live);
      rig.auth->version = 5;
    });
    PingAt(5);
  }
  void PingAt(int64_t version) {
    auth::v1::WatchKeysResponse ping;
    ping.set_version(version);
    Push(ping);
  }
  static uint64_t Tag(const std::string& digest) { return KeyTag(kTagKey, digest); }
  KeyCacheCounters counters() {
    KeyCacheCounters counters;
    rig.RunOnLoop([&](Loop&) { counters = rig.worker->keys->counters(); });
    return counters;
  }
  // Sends many requests at once. Returns how many were refused as unknown; the others got 503.
  int Flood(int requests, const std::function<std::string(int)>& address) {
    int finished = 0;
    int unknown = 0;
    rig.RunOnLoop([&](Loop& loop) {
      for (int i = 0; i < requests; ++i) {
        loop.Spawn([](std::shared_ptr<KeyCache> keys, std::string digest, std::string peer,
                      int& finished, int& unknown) -> Task<void> {
          const auto key = co_await keys->Get(digest, peer);
          if (key.ok()) EXPECT_EQ(*key, nullptr);
          unknown += key.ok() ? 1 : 0;
          ++finished;
        }(rig.worker->keys, "made up " + std::to_string(++floods) + std::string(20, ' '),
                                                   address(i), finished, unknown));
      }
    });
    bool done = false;
    while (!done) rig.RunOnLoop([&](Loop&) { done = finished == requests; });
    return unknown;
  }

  static inline const std::string kTagKey = std::string(32, 't');
  const std::shared_ptr<KeyFilter> filter = KeyFilter::Make(KeyFilter::ShapeFor(1'000, 7));
  int floods = 0;
};

std::string AddressOf(int i) {
  return "10.1." + std::to_string(i / 256 % 256) + "." + std::to_string(i % 256);
}

// H49.
TEST_F(KeyFilterTest, MadeUpKeysFromManyAddressesAreRefusedWithoutALookup) {
  EXPECT_EQ(Flood(5'000, AddressOf), 5'000);
  EXPECT_LE(counters().lookups, 5) << "0.33 on average pass the filter";
  EXPECT_GE(counters().filtered, 4'995);
  EXPECT_LE(rig.auth->version_reads, 2) << "one for all waiters";
  // During the flood, a key that this gateway has not seen before is served.
  EXPECT_NE(*Get(), nullptr);
}

TEST_F(KeyFilterTest, AKeyThatHasNotReachedTheFilterIsWaitedFor) {
  rig.RunOnLoop([&](Loop&) {
    rig.auth->keys["created"] = rig.key;
    rig.auth->version = 6;
  });
  Result<KeyPtr> found = KeyPtr();
  bool done = false;
  rig.RunOnLoop([&](Loop& loop) {
    loop.Spawn([](std::shared_ptr<KeyCache> keys, Result<KeyPtr>& found, bool& done) -> Task<void> {
      found = co_await keys->Get("created", "10.0.0.1");
      done = true;
    }(rig.worker->keys, found, done));
  });
  bool read = false;
  while (!read) rig.RunOnLoop([&](Loop&) { read = rig.auth->version_reads == 1; });
  rig.RunOnLoop([&](Loop&) { EXPECT_FALSE(done); });
  filter->Add(Tag("created"));
  PingAt(6);
  bool finished = false;
  while (!finished) rig.RunOnLoop([&](Loop&) { finished = done; });
  ASSERT_TRUE(found.ok());
  EXPECT_NE(*found, nullptr);
}

TEST_F(KeyFilterTest, AKeyIsLookedUpWhenTheFilterCannotBeTrusted) {
  const auto created = [&](const std::string& name) {
    rig.RunOnLoop([&](Loop&) { rig.auth->keys[name] = rig.key; });
    return name;
  };
  // Auth's version is ahead of the stream and stays there.
  rig.RunOnLoop([&](Loop&) { rig.auth->version = 6; });
  EXPECT_NE(*Get(created("behind")), nullptr);
  // Now the stream is silent.
  const int reads = rig.auth->version_reads;
  rig.clock.Advance(4 * kSecondUs);
  EXPECT_NE(*Get(created("silent")), nullptr);
  EXPECT_EQ(rig.auth->version_reads, reads);
  // A reset removed the filter.
  PingAt(6);
  rig.RunOnLoop([&](Loop&) { rig.worker->keys->SetFilter(nullptr); });
  EXPECT_NE(*Get(created("reset")), nullptr);
  EXPECT_EQ(rig.auth->version_reads, reads);
}

TEST_F(KeyFilterTest, WithoutAuthAMadeUpKeyIs503) {
  rig.auth->down = true;
  const auto result = Get("made up");
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().id, ErrorId::kServiceUnavailable);
}

TEST_F(KeyFilterTest, KeysInUseDoNotDependOnTheFilter) {
  EXPECT_NE(*Get(), nullptr);
  rig.RunOnLoop([&](Loop&) {
    rig.worker->keys->SetFilter(
        std::make_shared<LiveFilter>(KeyFilter::Make(KeyFilter::ShapeFor(10, 8)), kTagKey));
  });
  EXPECT_NE(*Get(), nullptr);
  AdvanceLive(25);
  EXPECT_NE(*Get(), nullptr);
}

// Without a filter, for example while auth builds it, lookups are bounded and addresses take turns.
TEST_F(KeyCacheTest, WithoutAFilterLookupsAreBoundedInTotal) {
  int finished = 0;
  constexpr int kRequests = 3'000;
  rig.RunOnLoop([&](Loop& loop) {
    for (int i = 0; i < kRequests; ++i) {
      loop.Spawn([](std::shared_ptr<KeyCache> keys, std::string digest, std::string peer,
                    int& finished) -> Task<void> {
        (void)co_await keys->Get(digest, peer);
        ++finished;
      }(rig.worker->keys, "made up " + std::to_string(i), AddressOf(i), finished));
    }
  });
  bool done = false;
  while (!done) rig.RunOnLoop([&](Loop&) { done = finished == kRequests; });
  EXPECT_LE(rig.auth->calls, 801) << "the burst: the clock does not move";
  EXPECT_GE(rig.auth->calls, 700);
}

TEST_F(KeyCacheTest, AResetClearsTheCache) {
  EXPECT_TRUE(Get().ok());
  auth::v1::WatchKeysResponse reset;
  reset.set_reset(true);
  Push(reset);
  EXPECT_TRUE(Get().ok());
  EXPECT_EQ(rig.auth->calls, 2);
}

TEST_F(KeyCacheTest, KeysInUseAreRefreshedInTheBackground) {
  EXPECT_TRUE(Get().ok());
  AdvanceLive(25);
  EXPECT_TRUE(Get().ok());
  rig.RunOnLoop([](Loop&) {});
  EXPECT_EQ(rig.auth->calls, 2);
  EXPECT_EQ(rig.worker->keys->counters().hits, 1);
  AdvanceLive(10);
  EXPECT_TRUE(Get().ok());
  EXPECT_EQ(rig.auth->calls, 2) << "35 s after the first lookup, 10 s after the second";
}

TEST_F(KeyCacheTest, ExpiredEntriesAreRevalidatedBeforeUse) {
  EXPECT_TRUE(Get().ok());
  AdvanceLive(31);
  rig.key.set_state(auth::v1::KEY_STATE_DISABLED);
  rig.key.set_version(2);
  rig.Publish();
  EXPECT_EQ((*Get())->state(), auth::v1::KEY_STATE_DISABLED);
}

TEST_F(KeyCacheTest, WithASilentStreamKeysAreRevalidatedOnUse) {
  EXPECT_TRUE(Get().ok());
  rig.clock.Advance(4 * kSecondUs);
  rig.key.set_state(auth::v1::KEY_STATE_DISABLED);
  rig.key.set_version(2);
  rig.Publish();
  EXPECT_EQ((*Get())->state(), auth::v1::KEY_STATE_DISABLED);
  EXPECT_EQ(rig.auth->calls, 2);
}

TEST_F(KeyCacheTest, CachedKeysAreServedForThirtySecondsOfAnOutage) {
  EXPECT_TRUE(Get().ok());
  AdvanceLive(10);
  rig.auth->down = true;
  rig.clock.Advance(29 * kSecondUs);
  const auto served = Get();
  ASSERT_TRUE(served.ok());
  EXPECT_EQ((*served)->key_id(), rig.key.key_id());
  EXPECT_EQ(rig.worker->keys->counters().stale, 1);
  rig.clock.Advance(2 * kSecondUs);
  const auto refused = Get();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().id, ErrorId::kServiceUnavailable);
  EXPECT_GT(refused.error().retry_after_ms, 0);
  EXPECT_FALSE(rig.worker->keys->HasRecentContact());
  // Auth is reachable again.
  rig.auth->down = false;
  EXPECT_TRUE(Get().ok());
  EXPECT_TRUE(rig.worker->keys->HasRecentContact());
}

TEST_F(KeyCacheTest, UncachedKeysInAnOutageAre503) {
  rig.auth->down = true;
  const auto result = Get("some digest");
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().id, ErrorId::kServiceUnavailable);
}

TEST_F(KeyCacheTest, AHangingAuthDelaysACachedKeyBriefly) {
  EXPECT_TRUE(Get().ok());
  rig.clock.Advance(5 * kSecondUs);
  rig.RunOnLoop([&](Loop&) { rig.auth->gate.Reset(); });
  EXPECT_TRUE(Get().ok());
  EXPECT_EQ(rig.worker->keys->counters().stale, 1);
  rig.RunOnLoop([&](Loop&) { rig.auth->gate.Set(); });
  while (rig.auth->running > 0) rig.RunOnLoop([](Loop&) {});
}

}  // namespace
}  // namespace tollgate::gateway
