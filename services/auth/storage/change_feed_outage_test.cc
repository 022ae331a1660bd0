// Auth on a PostgreSQL that hangs, or that loses its primary (decision 58).
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/keys/key_format.h"
#include "services/auth/storage/change_feed.h"
#include "services/auth/testing/store_calls.h"
#include "tests/support/postgres.h"

namespace tollgate::auth {
namespace {

using Message = std::shared_ptr<const v1::WatchKeysResponse>;

class ChangeFeedOutageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    server_ = testing::TestPostgres::Start();
    if (!server_) {
      ASSERT_FALSE(testing::TestPostgres::Required());
      GTEST_SKIP() << "PostgreSQL is not installed";
    }
  }
  void Open(const std::string& url) {
    auto store = AuthStore::Open(
        {.database = {.url = url}, .pepper = std::string(32, 'p'), .brand = "tollgate"}, clock_);
    ASSERT_TRUE(store) << store.error().ToString();
    store_ = std::move(*store);
    MakeWorkspace(*store_, "w");
    feed_ = std::make_unique<ChangeFeed>(*store_, clock_);
    feed_->Subscribe({}, [this](Message message) { received_.push_back(std::move(message)); });
    Step();
    ASSERT_TRUE(feed_->healthy());
  }
  // Steps a second later, when a ping is due.
  void Step() {
    clock_.Advance(1'000'000);
    feed_->Step();
  }
  Result<v1::VerifyKeyResponse> Verify(const std::string& secret) {
    v1::VerifyKeyRequest request;
    request.set_key_digest(KeyDigest(secret));
    return store_->VerifyKey(request);
  }
  // Duration of a step of the feed in seconds. Thaws the server after 60 s, so that the test cannot
  // hang.
  double StepSeconds() {
    std::promise<void> ended;
    std::thread rescue([this, end = ended.get_future()] {
      if (end.wait_for(std::chrono::seconds(60)) == std::future_status::timeout) {
        server_->ThawAll();
      }
    });
    const auto began = std::chrono::steady_clock::now();
    Step();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    ended.set_value();
    rescue.join();
    return took.count();
  }

  ManualClock clock_;
  std::unique_ptr<testing::TestPostgres> server_;
  std::unique_ptr<AuthStore> store_;
  std::unique_ptr<ChangeFeed> feed_;
  std::vector<Message> received_;
};

// A hung database keeps its connections open and refuses nothing. Gateways serve cached keys for 30
// s without a message from auth.
TEST_F(ChangeFeedOutageTest, AReplicaVouchesWhenItsDatabaseStandsStill) {
  Open(server_->Url("postgres"));
  const std::string secret = MakeTestKey(*store_, "w").secret();
  const std::string other = MakeTestKey(*store_, "w").secret();
  Step();
  ASSERT_TRUE(Verify(secret)->found());
  server_->FreezeAll();
  EXPECT_LT(StepSeconds(), 28) << "gateways must be told within 30 s";
  EXPECT_TRUE(received_.back()->vouched());
  EXPECT_FALSE(feed_->healthy());
  const auto vouched = Verify(secret);
  ASSERT_TRUE(vouched) << vouched.error().ToString();
  EXPECT_TRUE(vouched->vouched());
  const auto unknown = Verify(other);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().id, ErrorId::kServiceUnavailable) << "503, not 401";
  double least = StepSeconds();
  for (int i = 0; i < 3 && least >= 8; ++i) least = std::min(least, StepSeconds());
  EXPECT_LT(least, 8) << "then it tries to connect once, not three times";
  server_->ThawAll();
  Step();
  EXPECT_TRUE(feed_->healthy());
  EXPECT_FALSE(received_.back()->vouched());
  EXPECT_TRUE(Verify(other)->found());
}

TEST_F(ChangeFeedOutageTest, AuthGoesOnWithThePrimaryOfSeveralServers) {
  const auto standby = server_->StartStandby();
  ASSERT_TRUE(standby);
  Open(testing::TestPostgres::UrlOf({standby.get(), server_.get()}, "postgres"));
  const std::string secret = MakeTestKey(*store_, "w").secret();
  Step();
  ASSERT_TRUE(Verify(secret)->found());
  server_->Kill();
  Step();
  EXPECT_TRUE(received_.back()->vouched());
  EXPECT_TRUE(Verify(secret)->vouched());
  ASSERT_TRUE(standby->Promote());
  Step();
  EXPECT_TRUE(feed_->healthy());
  const auto found = Verify(secret);
  ASSERT_TRUE(found) << found.error().ToString();
  EXPECT_FALSE(found->vouched());
  EXPECT_TRUE(Verify(MakeTestKey(*store_, "w").secret())->found()) << "and takes new keys";
}

}  // namespace
}  // namespace tollgate::auth
