// See ADR 0013.
#include "services/auth/storage/live_keys.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "common/keys/key_format.h"
#include "services/auth/testing/store_calls.h"

namespace tollgate::auth {
namespace {

class LiveKeysTest : public ::testing::Test {
 protected:
  LiveKeysTest() {
    std::string folder = ::testing::TempDir() + "live_XXXXXX";
    folder_ = ::mkdtemp(folder.data());
    auto store = AuthStore::Open({.database = {.url = "sqlite:" + folder_ + "/auth.db"},
                                  .pepper = std::string(32, 'p'),
                                  .brand = "tollgate"},
                                 clock_);
    EXPECT_TRUE(store);
    store_ = std::move(*store);
    MakeWorkspace(*store_, "w");
  }
  ~LiveKeysTest() override { std::filesystem::remove_all(folder_); }

  TestKey CreateKey() { return MakeTestKey(*store_, "w"); }
  void SetState(const TestKey& key, v1::KeyState state) {
    tollgate::auth::SetState(*store_, key, state);
  }
  // Gives the key the form of one that was created before tags existed.
  void RemoveTag(const TestKey& key) {
    auto database = sql::Database::Open({.url = "sqlite:" + folder_ + "/auth.db"});
    ASSERT_TRUE((*(*database)->Borrow())
                    ->ExecuteScript("UPDATE virtual_key SET filter_tag = 0 WHERE key_id = '" +
                                    key.key().key_id() + "'"));
  }
  v1::KeyChange LastChange() { return store_->ChangedAfter(*store_->Version() - 1, 1)->front(); }
  uint64_t TagOf(const TestKey& key) { return KeyTag(store_->tag_key(), KeyDigest(key.secret())); }
  bool Has(const LiveKeys& keys, const TestKey& key) {
    return keys.filter()->MayContain(TagOf(key));
  }
  static bool HasId(const LiveKeys& keys, const TestKey& key) {
    return keys.filter()->MayContain(KeyIdElement(key.key().key_id()));
  }

  ManualClock clock_;
  std::string folder_;
  std::unique_ptr<AuthStore> store_;
};

TEST_F(LiveKeysTest, TheFilterHasEveryKeyThatIsNotRevoked) {
  const auto active = CreateKey();
  const auto disabled = CreateKey();
  const auto revoked = CreateKey();
  SetState(disabled, v1::KEY_STATE_DISABLED);
  SetState(revoked, v1::KEY_STATE_REVOKED);
  LiveKeys keys(*store_, {});
  keys.Restart();
  EXPECT_EQ(keys.filter(), nullptr);
  ASSERT_TRUE(keys.ReadOn());
  ASSERT_NE(keys.filter(), nullptr);
  EXPECT_TRUE(Has(keys, active));
  EXPECT_FALSE(HasId(keys, active)) << "its id alone does not pass";
  EXPECT_FALSE(keys.has_untagged());
  EXPECT_TRUE(Has(keys, disabled));
  EXPECT_FALSE(Has(keys, revoked));
  EXPECT_EQ(keys.generation(), 1);
}

TEST_F(LiveKeysTest, ReadsALargeDatabaseInPartsAndKeepsWhatIsAddedMeanwhile) {
  std::vector<TestKey> all;
  for (int i = 0; i < 7; ++i) all.push_back(CreateKey());
  LiveKeys keys(*store_, {.page_size = 2, .pages = 1, .elements = 3});
  keys.Restart();
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(keys.ReadOn());
    EXPECT_EQ(keys.filter(), nullptr) << "incomplete";
    all.push_back(CreateKey());
    // The new id may sort before the next page, after it, or after all pages.
    keys.Add(LastChange());
  }
  for (int i = 0; i < 10 && !keys.filter(); ++i) ASSERT_TRUE(keys.ReadOn());
  ASSERT_NE(keys.filter(), nullptr);
  for (const auto& key : all) EXPECT_TRUE(Has(keys, key));
}

TEST_F(LiveKeysTest, IsBuiltAnewWhenMoreKeysWereAddedThanItWasPlannedFor) {
  LiveKeys keys(*store_, {.min_keys = 4});
  keys.Restart();
  ASSERT_TRUE(keys.ReadOn());
  const size_t bytes = keys.filter()->shape().bytes;
  std::vector<TestKey> all;
  for (int i = 0; i < 40; ++i) {
    all.push_back(CreateKey());
    keys.Add(LastChange());
  }
  for (const auto& key : all) EXPECT_TRUE(Has(keys, key));
  SetState(all.front(), v1::KEY_STATE_REVOKED);
  keys.Add(LastChange());
  ASSERT_TRUE(keys.ReadOn());
  EXPECT_EQ(keys.generation(), 2);
  EXPECT_GT(keys.filter()->shape().bytes, bytes);
  EXPECT_FALSE(Has(keys, all.front())) << "revoked keys are left out";
  for (size_t i = 1; i < all.size(); ++i) EXPECT_TRUE(Has(keys, all[i]));
  ASSERT_TRUE(keys.ReadOn());
  EXPECT_EQ(keys.generation(), 2) << "once";
}

TEST_F(LiveKeysTest, AKeyWithoutATagIsInTheFilterByItsIdUntilItIsLookedUp) {
  const auto key = CreateKey();
  RemoveTag(key);
  LiveKeys keys(*store_, {});
  keys.Restart();
  ASSERT_TRUE(keys.ReadOn());
  EXPECT_TRUE(keys.has_untagged());
  EXPECT_TRUE(HasId(keys, key));
  EXPECT_FALSE(Has(keys, key));

  v1::VerifyKeyRequest request;
  request.set_key_digest(KeyDigest(key.secret()));
  ASSERT_TRUE(store_->VerifyKey(request)->found());
  EXPECT_EQ(LastChange().filter_tag(), TagOf(key));
  keys.Restart();
  ASSERT_TRUE(keys.ReadOn());
  EXPECT_FALSE(keys.has_untagged());
  EXPECT_TRUE(Has(keys, key));
}

TEST_F(LiveKeysTest, AChangeOfAKeyWithoutATagAddsItsId) {
  LiveKeys keys(*store_, {});
  keys.Restart();
  ASSERT_TRUE(keys.ReadOn());
  const auto key = CreateKey();  // created by a version that does not know tags
  RemoveTag(key);
  keys.Add(LastChange());
  EXPECT_TRUE(HasId(keys, key));
  EXPECT_TRUE(keys.has_untagged());
}

TEST_F(LiveKeysTest, AfterARestartTheOldFilterIsGone) {
  LiveKeys keys(*store_, {});
  keys.Restart();
  ASSERT_TRUE(keys.ReadOn());
  keys.Restart();
  EXPECT_EQ(keys.filter(), nullptr);
  const auto key = CreateKey();
  ASSERT_TRUE(keys.ReadOn());
  EXPECT_TRUE(Has(keys, key));
}

}  // namespace
}  // namespace tollgate::auth
