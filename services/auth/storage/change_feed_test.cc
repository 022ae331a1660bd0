#include "services/auth/storage/change_feed.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <future>

namespace tollgate::auth {
namespace {

using Message = std::shared_ptr<const v1::WatchKeysResponse>;

class ChangeFeedTest : public ::testing::Test {
 protected:
  ChangeFeedTest() {
    std::string folder = ::testing::TempDir() + "feed_XXXXXX";
    folder_ = ::mkdtemp(folder.data());
    here_ = Open();
    there_ = Open();
    v1::CreateWorkspaceRequest request;
    request.set_workspace_id("w");
    EXPECT_TRUE(here_->CreateWorkspace(request));
  }
  ~ChangeFeedTest() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<AuthStore> Open() {
    auto store = AuthStore::Open({.database = {.url = "sqlite:" + folder_ + "/auth.db"},
                                  .pepper = std::string(32, 'p'),
                                  .brand = "tollgate"},
                                 clock_);
    EXPECT_TRUE(store);
    return std::move(*store);
  }
  std::string MakeKeyAt(AuthStore& store) {
    v1::CreateKeyRequest request;
    request.set_workspace_id("w");
    auto made = store.CreateKey(request);
    EXPECT_TRUE(made);
    return made->key().key_id();
  }
  void Disable(AuthStore& store, const std::string& key) {
    v1::SetKeyStateRequest request;
    request.set_key_id(key);
    request.set_state(v1::KEY_STATE_DISABLED);
    EXPECT_TRUE(store.SetKeyState(request));
  }
  static ChangeFeed::Sink Into(std::vector<Message>& messages) {
    return [&messages](Message message) { messages.push_back(std::move(message)); };
  }

  ManualClock clock_;
  std::string folder_;
  // Two replicas on one database.
  std::unique_ptr<AuthStore> here_;
  std::unique_ptr<AuthStore> there_;
};

TEST_F(ChangeFeedTest, ANewWatcherGetsAPingWithTheVersion) {
  MakeKeyAt(*here_);
  ChangeFeed feed(*here_, clock_);
  std::vector<Message> got;
  feed.Subscribe(0, Into(got));
  feed.Step();
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0]->version(), 2);
  EXPECT_EQ(got[0]->changes_size(), 0);
  EXPECT_FALSE(got[0]->reset());
  EXPECT_TRUE(feed.healthy());
}

TEST_F(ChangeFeedTest, AChangeAtAnotherReplicaComesWithTheNextLook) {
  const std::string key = MakeKeyAt(*here_);
  ChangeFeed feed(*here_, clock_);
  std::vector<Message> got;
  feed.Subscribe(0, Into(got));
  feed.Step();
  Disable(*there_, key);
  feed.Step();
  ASSERT_EQ(got.size(), 2u);
  ASSERT_EQ(got[1]->changes_size(), 1);
  EXPECT_EQ(got[1]->changes(0).key().key_id(), key);
  EXPECT_EQ(got[1]->changes(0).key().state(), v1::KEY_STATE_DISABLED);
  EXPECT_EQ(got[1]->version(), 3);
}

TEST_F(ChangeFeedTest, AReturningWatcherGetsWhatItMissed) {
  const std::string one = MakeKeyAt(*here_);
  const std::string two = MakeKeyAt(*here_);
  Disable(*here_, one);
  ChangeFeed feed(*here_, clock_);
  std::vector<Message> got;
  feed.Subscribe(2, Into(got));
  feed.Step();
  ASSERT_EQ(got.size(), 2u);
  ASSERT_EQ(got[0]->changes_size(), 2);
  EXPECT_EQ(got[0]->changes(0).key().key_id(), two);
  EXPECT_EQ(got[0]->changes(1).key().key_id(), one);
  EXPECT_EQ(got[1]->version(), 4);
}

TEST_F(ChangeFeedTest, AWatcherFromTheFutureMustForgetEverything) {
  ChangeFeed feed(*here_, clock_);
  std::vector<Message> got;
  feed.Subscribe(1000, Into(got));
  feed.Step();
  ASSERT_EQ(got.size(), 1u);
  EXPECT_TRUE(got[0]->reset());
  EXPECT_EQ(got[0]->version(), 1);
}

TEST_F(ChangeFeedTest, APingComesEachSecondUnlessThereWasAMessage) {
  ChangeFeed feed(*here_, clock_);
  std::vector<Message> got;
  feed.Subscribe(0, Into(got));
  feed.Step();
  for (int i = 0; i < 3; ++i) {
    clock_.Advance(250'000);
    feed.Step();
  }
  EXPECT_EQ(got.size(), 1u);
  clock_.Advance(250'000);
  feed.Step();
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[1]->changes_size(), 0);
}

TEST_F(ChangeFeedTest, WithoutTheDatabaseThereAreNoPings) {
  ChangeFeed feed(*here_, clock_);
  std::vector<Message> got;
  feed.Subscribe(0, Into(got));
  feed.Step();
  auto database = sql::Database::Open({.url = "sqlite:" + folder_ + "/auth.db"});
  auto connection = (*database)->Borrow();
  ASSERT_TRUE((*connection)->ExecuteScript("ALTER TABLE auth_head RENAME TO away"));
  clock_.Advance(2'000'000);
  feed.Step();
  EXPECT_EQ(got.size(), 1u);
  EXPECT_FALSE(feed.healthy());
  ASSERT_TRUE((*connection)->ExecuteScript("ALTER TABLE away RENAME TO auth_head"));
  feed.Step();
  EXPECT_EQ(got.size(), 2u);
  EXPECT_TRUE(feed.healthy());
}

TEST_F(ChangeFeedTest, ARestoredDatabaseResetsTheWatchers) {
  MakeKeyAt(*here_);
  ChangeFeed feed(*here_, clock_);
  std::vector<Message> got;
  feed.Subscribe(0, Into(got));
  feed.Step();
  auto database = sql::Database::Open({.url = "sqlite:" + folder_ + "/auth.db"});
  ASSERT_TRUE((*(*database)->Borrow())->ExecuteScript("UPDATE auth_head SET version = 1"));
  feed.Step();
  ASSERT_EQ(got.size(), 2u);
  EXPECT_TRUE(got[1]->reset());
  EXPECT_EQ(got[1]->version(), 1);
}

TEST_F(ChangeFeedTest, AnUnsubscribedWatcherHearsNothingMore) {
  ChangeFeed feed(*here_, clock_);
  std::vector<Message> one;
  std::vector<Message> two;
  const uint64_t watcher = feed.Subscribe(0, Into(one));
  feed.Subscribe(0, Into(two));
  feed.Step();
  feed.Unsubscribe(watcher);
  MakeKeyAt(*here_);
  feed.Step();
  EXPECT_EQ(one.size(), 1u);
  EXPECT_EQ(two.size(), 2u);
  EXPECT_EQ(feed.watchers(), 1);
}

// On its own thread: well within the second that decisions.md 14 gives.
TEST_F(ChangeFeedTest, TheThreadFindsAForeignChangeWithinASecond) {
  const std::string key = MakeKeyAt(*here_);
  ChangeFeed feed(*here_, clock_);
  std::promise<void> greeted;
  std::promise<Message> changed;
  feed.Subscribe(0, [&](Message message) {
    if (message->changes_size() == 0) {
      greeted.set_value();
    } else {
      changed.set_value(std::move(message));
    }
  });
  feed.Start();
  greeted.get_future().wait();
  const auto begin = std::chrono::steady_clock::now();
  Disable(*there_, key);
  auto future = changed.get_future();
  ASSERT_EQ(future.wait_for(std::chrono::seconds(5)), std::future_status::ready);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
  EXPECT_EQ(future.get()->changes(0).key().key_id(), key);
  feed.Stop();
}

}  // namespace
}  // namespace tollgate::auth
