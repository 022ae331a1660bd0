// Responses and changes that overtake each other. See docs/design/keys.md 4.
#include "gateway/worker/key_cache.h"

#include <gtest/gtest.h>

#include <functional>

#include "gateway/testing/key_cache_fixture.h"

namespace tollgate::gateway {
namespace {

using testing::KeyCacheTest;

// These tests control the order of lookup responses and stream messages. The parameter says whether
// auth reports the version at which it read a key; without it the version is 0.
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
  // The first message of a stream.
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
  // Starts a request and holds the response of its lookup until Open; it carries auth's current
  // state.
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

// Before the stream has begun: no ping has arrived.
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
  Greet(6);  // a new watcher does not get earlier changes
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
  // The database was restored from a backup that lacks the key.
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
  rig.RunOnLoop([&](Loop&) { rig.auth->version = 5; });  // auth stays at this version
  EXPECT_EQ((*Get())->state(), auth::v1::KEY_STATE_ACTIVE);
  EXPECT_EQ(rig.auth->calls, 2) << "read once more, not forever";
  rig.key.set_state(auth::v1::KEY_STATE_REVOKED);
  rig.key.set_version(6);
  rig.Publish();
  rig.RunOnLoop([&](Loop&) { rig.auth->version = 6; });
  EXPECT_EQ((*Get())->state(), auth::v1::KEY_STATE_REVOKED) << "revalidated on use";
}

}  // namespace
}  // namespace tollgate::gateway
