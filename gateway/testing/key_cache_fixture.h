// Fixture for tests of the key cache. The test controls the change stream.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "common/base/time_units.h"
#include "gateway/testing/pipeline_fakes.h"
#include "gateway/worker/key_cache.h"

namespace tollgate::gateway::testing {

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
  // Advances the clock while pings from auth keep arriving.
  void AdvanceLive(int64_t seconds) {
    for (int64_t i = 0; i < seconds; ++i) {
      rig.clock.Advance(kSecondUs);
      Ping();
    }
  }

  Rig rig;
  const std::string digest;
};

}  // namespace tollgate::gateway::testing
