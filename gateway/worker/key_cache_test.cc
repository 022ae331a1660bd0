// See docs/design/keys.md 4, decision 14.
#include "gateway/worker/key_cache.h"

#include <gtest/gtest.h>

#include <functional>

#include "gateway/testing/pipeline_fakes.h"

namespace tollgate::gateway {
namespace {

constexpr int64_t kSecond = 1'000'000;

class KeyCacheTest : public ::testing::Test {
 protected:
  KeyCacheTest() : digest(KeyDigest(rig.key_text)) {}
  void SetUp() override {
    if (has_stream()) Ping();
  }
  virtual bool has_stream() const { return true; }

  Result<KeyPtr> Get() { return Get(digest); }
  Result<KeyPtr> Get(const std::string& which, const std::string& peer = "10.0.0.1") {
    Result<KeyPtr> found = KeyPtr();
    tollgate::testing::RunOn(rig.pool.loop(0), [&](Loop&) -> Task<int> {
      found = co_await rig.worker->keys->Get(which, peer);
      co_return 0;
    });
    return found;
  }
  void Ping() { Push({}); }
  void Push(const auth::v1::WatchKeysResponse& message) {
    rig.RunOnLoop([&](Loop&) { rig.worker->keys->OnChanges(message); });
  }
  void PushState(auth::v1::KeyState state, int64_t version) {
    auth::v1::WatchKeysResponse message;
    *message.add_changes()->mutable_key() = rig.key;
    message.mutable_changes(0)->mutable_key()->set_state(state);
    message.mutable_changes(0)->mutable_key()->set_version(version);
    Push(message);
  }
  // Advances the clock while auth's pings arrive.
  void AdvanceLive(int64_t seconds) {
    for (int64_t i = 0; i < seconds; ++i) {
      rig.clock.Advance(kSecond);
      Ping();
    }
  }

  testing::Rig rig;
  const std::string digest;
};

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
      ++refused;  // not looked up, so not 401
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
  PushState(auth::v1::KEY_STATE_ACTIVE, 1);  // an older version, late
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

// The order of a look-up's response and of the stream's messages is what these tests control; auth
// reports the version at which it read a key, or does not (0).
class KeyVersionTest : public KeyCacheTest, public ::testing::WithParamInterface<bool> {
 protected:
  // Sets the state of the key in auth's database.
  void Change(auth::v1::KeyState state, int64_t version) {
    rig.key.set_state(state);
    rig.key.set_version(version);
    rig.Publish();
    SetVersion(version);
  }
  void SetVersion(int64_t version) {
    rig.RunOnLoop([&](Loop&) { rig.auth->version = GetParam() ? version : 0; });
  }
  // What the stream begins with.
  void Greet(int64_t version) {
    auth::v1::WatchKeysResponse ping;
    ping.set_version(version);
    Push(ping);
  }
  void PushKey(int64_t version) {
    auth::v1::WatchKeysResponse message;
    message.set_version(version);
    *message.add_changes()->mutable_key() = rig.key;
    Push(message);
  }
  // Starts a request whose look-up is answered by Open, with what auth has now.
  void RequestInFlight() {
    rig.RunOnLoop([&](Loop& loop) {
      rig.auth->gate.Reset();
      done = false;
      loop.Spawn([](std::shared_ptr<KeyCache> keys, std::string digest, Result<KeyPtr>& found,
                    bool& done) -> Task<void> {
        found = co_await keys->Get(digest, "10.0.0.1");
        done = true;
      }(rig.worker->keys, digest, found, done));
    });
  }
  void Open() {
    rig.RunOnLoop([&](Loop&) { rig.auth->gate.Set(); });
    bool ready = false;
    while (!ready) rig.RunOnLoop([&](Loop&) { ready = done; });
  }
  Result<KeyPtr> found = KeyPtr();
  bool done = false;
};
INSTANTIATE_TEST_SUITE_P(Auth, KeyVersionTest, ::testing::Bool(), [](const auto& info) {
  return info.param ? "reports_versions" : "reports_none";
});

// Without a stream: no ping has come yet.
class KeyStartUpTest : public KeyVersionTest {
 protected:
  bool has_stream() const override { return false; }
};
INSTANTIATE_TEST_SUITE_P(Auth, KeyStartUpTest, ::testing::Bool(), [](const auto& info) {
  return info.param ? "reports_versions" : "reports_none";
});

TEST_P(KeyStartUpTest, AKeyRevokedBetweenItsLookupAndTheFirstMessageIsRefused) {
  Change(auth::v1::KEY_STATE_ACTIVE, 5);
  EXPECT_EQ((*Get())->state(), auth::v1::KEY_STATE_ACTIVE);
  Change(auth::v1::KEY_STATE_REVOKED, 6);
  Greet(6);  // a new watcher is not told what changed before
  EXPECT_EQ((*Get())->state(), auth::v1::KEY_STATE_REVOKED);
  const int calls = rig.auth->calls;
  EXPECT_EQ((*Get())->state(), auth::v1::KEY_STATE_REVOKED);
  EXPECT_EQ(rig.auth->calls, calls) << "cached from now on";
}

TEST_P(KeyStartUpTest, AResponseThatTheFirstMessageOvertakesIsReadAgain) {
  Change(auth::v1::KEY_STATE_ACTIVE, 5);
  RequestInFlight();
  Change(auth::v1::KEY_STATE_REVOKED, 6);
  Greet(6);
  Open();
  EXPECT_EQ((*found)->state(), auth::v1::KEY_STATE_REVOKED);
  EXPECT_EQ((*Get())->state(), auth::v1::KEY_STATE_REVOKED);
}

TEST_P(KeyStartUpTest, AnEmptyDatabaseGreetsEveryWatcherAsNew) {
  Greet(0);
  Change(auth::v1::KEY_STATE_ACTIVE, 5);
  EXPECT_EQ((*Get())->state(), auth::v1::KEY_STATE_ACTIVE);
  Change(auth::v1::KEY_STATE_REVOKED, 6);
  Greet(6);  // after a reconnect from version 0
  EXPECT_EQ((*Get())->state(), auth::v1::KEY_STATE_REVOKED);
}

TEST_P(KeyStartUpTest, AKeyCreatedAfterItsLookupIsFoundAfterTheFirstMessage) {
  EXPECT_EQ(*Get("not yet"), nullptr);
  rig.RunOnLoop([&](Loop&) { rig.auth->keys["not yet"] = rig.key; });
  SetVersion(6);
  Greet(6);
  EXPECT_NE(*Get("not yet"), nullptr);
}

TEST_P(KeyVersionTest, AResponseReadBeforeAChangeDoesNotUndoIt) {
  Greet(5);
  Change(auth::v1::KEY_STATE_ACTIVE, 5);
  RequestInFlight();
  Change(auth::v1::KEY_STATE_REVOKED, 6);
  PushKey(6);
  Open();
  EXPECT_EQ((*found)->state(), auth::v1::KEY_STATE_REVOKED);
  EXPECT_EQ((*Get())->state(), auth::v1::KEY_STATE_REVOKED);
  EXPECT_EQ(rig.auth->calls, 1);
}

TEST_P(KeyVersionTest, AResponseOvertakenByMoreChangesThanAreKeptIsReadAgain) {
  Greet(5);
  Change(auth::v1::KEY_STATE_ACTIVE, 5);
  RequestInFlight();
  Change(auth::v1::KEY_STATE_REVOKED, 6);
  PushKey(6);
  auth::v1::WatchKeysResponse many;
  many.set_version(400);
  for (int i = 7; i <= 400; ++i) {
    auth::v1::Key& key = *many.add_changes()->mutable_key();
    key.set_key_id("other " + std::to_string(i));
    key.set_version(i);
  }
  Push(many);
  SetVersion(400);
  Open();
  EXPECT_EQ((*found)->state(), auth::v1::KEY_STATE_REVOKED);
  EXPECT_EQ((*Get())->state(), auth::v1::KEY_STATE_REVOKED);
}

TEST_P(KeyVersionTest, AResponseFromBeforeAResetIsReadAgain) {
  Greet(50);
  Change(auth::v1::KEY_STATE_ACTIVE, 50);
  RequestInFlight();
  // The database is restored from a backup that lacks the key.
  rig.RunOnLoop([&](Loop&) { rig.auth->keys.clear(); });
  SetVersion(7);
  auth::v1::WatchKeysResponse reset;
  reset.set_version(7);
  reset.set_reset(true);
  Push(reset);
  Open();
  EXPECT_EQ(*found, nullptr);
}

TEST_P(KeyVersionTest, AKeyThatIsCreatedAfterAMissWorksWithItsChange) {
  Greet(5);
  SetVersion(5);
  EXPECT_EQ(*Get("not yet"), nullptr);
  rig.RunOnLoop([&](Loop&) { rig.auth->keys["not yet"] = rig.key; });
  SetVersion(6);
  rig.key.set_version(6);
  PushKey(6);
  EXPECT_NE(*Get("not yet"), nullptr) << "not hidden by the cached miss";
}

TEST_F(KeyCacheTest, AResponseOfAReplicaBehindTheStreamIsNotTrusted) {
  auth::v1::WatchKeysResponse ping;
  ping.set_version(6);
  Push(ping);
  rig.RunOnLoop([&](Loop&) { rig.auth->version = 5; });  // always
  EXPECT_EQ((*Get())->state(), auth::v1::KEY_STATE_ACTIVE);
  EXPECT_EQ(rig.auth->calls, 2) << "read once more, not for ever";
  rig.key.set_state(auth::v1::KEY_STATE_REVOKED);
  rig.key.set_version(6);
  rig.Publish();
  rig.RunOnLoop([&](Loop&) { rig.auth->version = 6; });
  EXPECT_EQ((*Get())->state(), auth::v1::KEY_STATE_REVOKED) << "revalidated on use";
}

// The filter of live keys (ADR 0013). It has the rig's key.
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
  // Many requests at once; returns those that were refused as unknown. The rest got 503.
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
  EXPECT_LE(rig.auth->version_reads, 2) << "one for all that wait";
  // A key that this gateway has not seen, during the flood.
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
  // The stream does not reach auth's version.
  rig.RunOnLoop([&](Loop&) { rig.auth->version = 6; });
  EXPECT_NE(*Get(created("behind")), nullptr);
  // The stream is silent.
  const int reads = rig.auth->version_reads;
  rig.clock.Advance(4 * kSecond);
  EXPECT_NE(*Get(created("silent")), nullptr);
  EXPECT_EQ(rig.auth->version_reads, reads);
  // A reset took the filter away.
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

// Without a filter, for example while auth builds it: lookups are bounded and addresses take turns.
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
  EXPECT_LE(rig.auth->calls, 801) << "the burst: the clock stands still";
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
  rig.clock.Advance(4 * kSecond);
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
  rig.clock.Advance(29 * kSecond);
  const auto served = Get();
  ASSERT_TRUE(served.ok());
  EXPECT_EQ((*served)->key_id(), rig.key.key_id());
  EXPECT_EQ(rig.worker->keys->counters().stale, 1);
  rig.clock.Advance(2 * kSecond);
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
  rig.clock.Advance(5 * kSecond);
  rig.RunOnLoop([&](Loop&) { rig.auth->gate.Reset(); });
  EXPECT_TRUE(Get().ok());
  EXPECT_EQ(rig.worker->keys->counters().stale, 1);
  rig.RunOnLoop([&](Loop&) { rig.auth->gate.Set(); });
  while (rig.auth->running > 0) rig.RunOnLoop([](Loop&) {});
}

}  // namespace
}  // namespace tollgate::gateway
