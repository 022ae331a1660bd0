// The gateway's key cache on auth's store and change feed: two replicas of auth on one database;
// the test controls the order in which responses and messages arrive. See docs/design/keys.md 4,
// decision 14, ADR 0013.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "common/keys/key_format.h"
#include "common/runtime/testing/run_coro.h"
#include "gateway/worker/key_cache.h"
#include "services/auth/storage/change_feed.h"
#include "services/auth/testing/store_calls.h"

namespace tollgate::test {
namespace {

using auth::AuthStore;
using auth::ChangeFeed;
using gateway::KeyCache;
using gateway::KeyPtr;

// Reads from one replica at once, and responds when the gate is open.
class StoreClient : public AuthClient {
 public:
  explicit StoreClient(Loop& loop) : gate(loop) { gate.Set(); }
  Task<Result<auth::v1::VerifyKeyResponse>> VerifyKey(auth::v1::VerifyKeyRequest request) override {
    ++lookups;
    auto response = replica->VerifyKey(request);
    (void)co_await gate.Wait();
    co_return response;
  }
  Task<Result<auth::v1::ReadVersionResponse>> ReadVersion(auth::v1::ReadVersionRequest) override {
    ++version_reads;
    auth::v1::ReadVersionResponse response;
    response.set_version(*replica->Version());
    co_return response;
  }
  Task<Result<auth::v1::ReportKeyUseResponse>> ReportKeyUse(
      auth::v1::ReportKeyUseRequest) override {
    co_return auth::v1::ReportKeyUseResponse();
  }
  std::unique_ptr<Subscription> WatchKeys(WatchHandler<auth::v1::WatchKeysResponse>) override {
    return nullptr;  // the test delivers the messages itself
  }

  AuthStore* replica = nullptr;
  int lookups = 0;
  int version_reads = 0;
  Event gate;
};

class KeyChangesTest : public ::testing::Test {
 protected:
  KeyChangesTest() {
    std::string folder = ::testing::TempDir() + "changes_XXXXXX";
    folder_ = ::mkdtemp(folder.data());
    a_ = Open();
    b_ = Open();
    auth::MakeWorkspace(*a_, "w");
    pool_.Start();
    OnLoop([&](Loop& loop) {
      client_ = std::make_unique<StoreClient>(loop);
      client_->replica = a_.get();
      cache_ = std::make_shared<KeyCache>(
          loop, clock_, *client_,
          std::make_shared<AddressLimiter>(KeyCache::kUnknownKeysPerAddress), 1);
    });
  }
  ~KeyChangesTest() override {
    OnLoop([&](Loop&) {
      cache_->Stop();
      cache_.reset();
    });
    std::filesystem::remove_all(folder_);
  }

  std::unique_ptr<AuthStore> Open() {
    auto store = AuthStore::Open({.database = {.url = "sqlite:" + folder_ + "/auth.db"},
                                  .pepper = std::string(32, 'p'),
                                  .brand = "tollgate"},
                                 clock_);
    EXPECT_TRUE(store);
    return std::move(*store);
  }
  auth::TestKey CreateKey(AuthStore& store) { return auth::MakeTestKey(store, "w"); }
  void Revoke(AuthStore& store, const auth::TestKey& key) {
    auth::SetState(store, key, auth::v1::KEY_STATE_REVOKED);
  }
  // Subscribes like the gateway's stream.
  uint64_t Watch(ChangeFeed& feed) {
    auth::v1::WatchKeysRequest request;
    request.set_after_version(version_);
    request.set_takes_filter(true);
    request.set_has_filter(filter_.current() != nullptr);
    return feed.Subscribe(
        request, [this](const std::shared_ptr<const auth::v1::WatchKeysResponse>& message) {
          version_ = message->version();
          OnLoop([&](Loop&) {
            if (filter_.Apply(*message)) cache_->SetFilter(filter_.current());
            cache_->OnChanges(*message);
          });
        });
  }
  void OnLoop(const std::function<void(Loop&)>& callback) {
    tollgate::testing::RunOn(pool_.loop(0), [&](Loop& loop) -> Task<int> {
      callback(loop);
      co_return 0;
    });
  }
  // Starts a request with the key.
  void Request(const std::string& key) {
    OnLoop([&](Loop& loop) {
      done_ = false;
      loop.Spawn([](KeyChangesTest& test, std::shared_ptr<KeyCache> cache,
                    std::string key) -> Task<void> {
        test.found_ = co_await cache->Get(KeyDigest(key), "10.0.0.1", PublicIdOf(key, "tollgate"));
        test.done_ = true;
      }(*this, cache_, key));
    });
  }
  // State of the key that the request got; unspecified when unknown.
  auth::v1::KeyState Outcome() {
    bool done = false;
    while (!done) OnLoop([&](Loop&) { done = done_; });
    EXPECT_TRUE(found_.ok());
    return found_.ok() && *found_ ? (*found_)->state() : auth::v1::KEY_STATE_UNSPECIFIED;
  }
  auth::v1::KeyState Get(const std::string& key) {
    Request(key);
    return Outcome();
  }

  ManualClock clock_;
  std::string folder_;
  std::unique_ptr<AuthStore> a_, b_;
  LoopPool pool_{1};
  std::unique_ptr<StoreClient> client_;
  std::shared_ptr<KeyCache> cache_;
  gateway::LiveFilterReceiver filter_;
  int64_t version_ = 0;
  Result<KeyPtr> found_ = KeyPtr();
  bool done_ = false;
};

TEST_F(KeyChangesTest, AKeyRevokedBetweenItsLookupAndTheGreetingIsRefused) {
  const auto key = CreateKey(*a_);
  EXPECT_EQ(Get(key.secret()), auth::v1::KEY_STATE_ACTIVE);
  Revoke(*b_, key);
  ChangeFeed feed(*a_, clock_);
  Watch(feed);
  feed.Step();
  EXPECT_EQ(Get(key.secret()), auth::v1::KEY_STATE_REVOKED);
}

TEST_F(KeyChangesTest, AResponseThatTheGreetingOvertakesIsReadAgain) {
  const auto key = CreateKey(*a_);
  OnLoop([&](Loop&) { client_->gate.Reset(); });
  Request(key.secret());
  bool read = false;
  while (!read) OnLoop([&](Loop&) { read = client_->lookups == 1; });
  Revoke(*a_, key);
  ChangeFeed feed(*a_, clock_);
  Watch(feed);
  feed.Step();
  OnLoop([&](Loop&) { client_->gate.Set(); });
  EXPECT_EQ(Outcome(), auth::v1::KEY_STATE_REVOKED);
}

TEST_F(KeyChangesTest, AnotherReplicaContinuesTheStreamWithoutAGap) {
  const auto key = CreateKey(*a_);
  ChangeFeed feed_a(*a_, clock_);
  const uint64_t watcher = Watch(feed_a);
  feed_a.Step();
  EXPECT_EQ(Get(key.secret()), auth::v1::KEY_STATE_ACTIVE);
  feed_a.Unsubscribe(watcher);
  Revoke(*a_, key);
  const auto created = CreateKey(*a_);
  ChangeFeed feed_b(*b_, clock_);
  OnLoop([&](Loop&) { client_->replica = b_.get(); });
  Watch(feed_b);
  feed_b.Step();
  EXPECT_EQ(Get(key.secret()), auth::v1::KEY_STATE_REVOKED);
  EXPECT_EQ(client_->lookups, 1) << "by the change alone";
  EXPECT_EQ(Get(created.secret()), auth::v1::KEY_STATE_ACTIVE) << "the filter was kept";
}

TEST_F(KeyChangesTest, AMadeUpKeyWithAPublicIdThatExistsIsRefusedWithoutALookup) {
  const auto key = CreateKey(*a_);
  ChangeFeed feed(*a_, clock_);
  Watch(feed);
  feed.Step();
  for (int i = 0; i < 5; ++i) {
    // Another secret, with its own checksum.
    std::string made_up = key.secret().substr(0, key.secret().size() - kKeyChecksumLength);
    made_up.replace(made_up.size() - 10, 10, MakeKey("tollgate").text.substr(20, 10));
    ASSERT_EQ(PublicIdOf(made_up + "000000", "tollgate"), key.key().key_id());
    EXPECT_EQ(Get(made_up + "000000"), auth::v1::KEY_STATE_UNSPECIFIED);
  }
  EXPECT_LE(client_->lookups, 1) << "one of 15,000 passes";
  EXPECT_EQ(Get(key.secret()), auth::v1::KEY_STATE_ACTIVE);
}

TEST_F(KeyChangesTest, AKeyWorksAsSoonAsItIsCreated) {
  ChangeFeed feed(*a_, clock_);
  Watch(feed);
  feed.Step();
  const auto key = CreateKey(*b_);
  Request(key.secret());  // before any message reports it
  bool read = false;
  while (!read) OnLoop([&](Loop&) { read = client_->version_reads == 1; });
  EXPECT_EQ(client_->lookups, 0);
  feed.Step();
  EXPECT_EQ(Outcome(), auth::v1::KEY_STATE_ACTIVE);
}

TEST_F(KeyChangesTest, ARestoredDatabaseTakesKeysAndFilterAway) {
  ChangeFeed feed(*a_, clock_);
  Watch(feed);
  feed.Step();
  const auto key = CreateKey(*a_);
  feed.Step();
  EXPECT_EQ(Get(key.secret()), auth::v1::KEY_STATE_ACTIVE);
  auto database = sql::Database::Open({.url = "sqlite:" + folder_ + "/auth.db"});
  ASSERT_TRUE((*(*database)->Borrow())
                  ->ExecuteScript("DELETE FROM virtual_key; UPDATE auth_head SET version = 1"));
  feed.Step();
  EXPECT_EQ(Get(key.secret()), auth::v1::KEY_STATE_UNSPECIFIED);
  EXPECT_EQ(client_->lookups, 1) << "the new filter lacks it";
}

}  // namespace
}  // namespace tollgate::test
