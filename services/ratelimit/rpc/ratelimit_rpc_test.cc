#include "services/ratelimit/rpc/ratelimit_rpc.h"

#include <gtest/gtest.h>

#include "services/ratelimit/storage/memory_store.h"

namespace tollgate::ratelimit {
namespace {

class RateLimitRpcTest : public ::testing::Test {
 protected:
  static std::string Slot(uint64_t n) { return Id::Make(1, 0, n).ToBytes(); }
  static v1::AcquireItem& Add(v1::AcquireRequest& request, uint64_t slot, int64_t per_minute) {
    v1::AcquireItem& item = *request.add_items();
    item.set_lease_id(Slot(slot));
    item.set_workspace_id("w");
    item.set_key_id("k");
    item.mutable_key_limits()->set_requests_per_minute(per_minute);
    return item;
  }

  grpc::Status Acquire(const v1::AcquireRequest& request, v1::AcquireResponse& response) {
    return Call([&](auto done) { rpc_.DoAcquire(request, response, std::move(done)); });
  }
  // The memory store answers before the call returns.
  template <typename Body>
  static grpc::Status Call(const Body& body) {
    std::optional<grpc::Status> status;
    body([&](const grpc::Status& answer) { status = answer; });
    EXPECT_TRUE(status.has_value());
    return status.value_or(grpc::Status::CANCELLED);
  }

  ManualClock clock_;
  MemoryStore store_{clock_, 30'000'000};
  RateLimitRpc rpc_{store_, clock_};
};

TEST_F(RateLimitRpcTest, ResultsAreInTheOrderOfTheRequest) {
  v1::AcquireRequest request;
  for (uint64_t i = 0; i < 4; ++i) Add(request, i + 1, 2);
  Add(request, 9, 0).set_key_id("other");
  v1::AcquireResponse response;
  ASSERT_TRUE(Acquire(request, response).ok());
  ASSERT_EQ(response.results_size(), 5);
  EXPECT_TRUE(response.results(0).granted());
  EXPECT_TRUE(response.results(1).granted());
  EXPECT_FALSE(response.results(2).granted());
  EXPECT_EQ(response.results(2).denied_by(), v1::LIMIT_KIND_REQUESTS);
  EXPECT_GE(response.results(2).retry_after_ms(), 30'000);
  EXPECT_EQ(response.results(1).requests().limit(), 2);
  EXPECT_EQ(response.results(1).requests().remaining(), 0);
  EXPECT_EQ(response.results(1).requests().reset_ms(), 60'000);
  EXPECT_TRUE(response.results(4).granted());
}

// Gateways divide the limits by this number while no limiter can be reached.
TEST_F(RateLimitRpcTest, AnswersSayHowManyGatewaysCall) {
  v1::AcquireRequest request;
  v1::AcquireResponse response;
  ASSERT_TRUE(Acquire(request, response).ok());
  EXPECT_EQ(response.gateways(), 0) << "a caller without an id";
  request.set_gateway_id(std::string(16, 'a'));
  ASSERT_TRUE(Acquire(request, response).ok());
  EXPECT_EQ(response.gateways(), 1) << "without an item, too";
  request.set_gateway_id(std::string(16, 'b'));
  Add(request, 1, 10);
  ASSERT_TRUE(Acquire(request, response).ok());
  EXPECT_EQ(response.gateways(), 2);
  clock_.Advance(61'000'000);
  ASSERT_TRUE(Acquire(request, response).ok());
  EXPECT_EQ(response.gateways(), 1);
}

TEST_F(RateLimitRpcTest, EveryRefusalReportsItsKind) {
  v1::AcquireRequest request;
  Add(request, 1, 0).mutable_workspace_limits()->set_concurrent_requests(1);
  Add(request, 2, 0).mutable_workspace_limits()->set_concurrent_requests(1);
  for (uint64_t i = 3; i < 5; ++i) {
    v1::AcquireItem& item = Add(request, i, 0);
    item.mutable_key_limits()->set_tokens_per_minute(100);
    item.set_estimated_tokens(100);
  }
  v1::AcquireResponse response;
  ASSERT_TRUE(Acquire(request, response).ok());
  EXPECT_EQ(response.results(1).denied_by(), v1::LIMIT_KIND_CONCURRENCY);
  EXPECT_EQ(response.results(3).denied_by(), v1::LIMIT_KIND_TOKENS);
}

TEST_F(RateLimitRpcTest, AnInvalidMessageTakesNothing) {
  v1::AcquireRequest request;
  Add(request, 1, 10);
  Add(request, 2, 10).set_lease_id("short");
  v1::AcquireResponse response;
  EXPECT_EQ(Acquire(request, response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(store_.Sweep().slots, 0u);
  request.mutable_items(1)->set_lease_id(std::string(16, '\0'));
  EXPECT_EQ(Acquire(request, response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(RateLimitRpcTest, ReleaseRenewAndPeek) {
  v1::AcquireRequest request;
  Add(request, 1, 10).mutable_key_limits()->set_concurrent_requests(5);
  Add(request, 2, 10).mutable_key_limits()->set_concurrent_requests(5);
  v1::AcquireResponse response;
  ASSERT_TRUE(Acquire(request, response).ok());

  v1::ReleaseRequest release;
  for (const std::string& slot : {Slot(1), Slot(7), std::string("malformed")}) {
    v1::ReleaseItem& item = *release.add_items();
    item.set_lease_id(slot);
    item.set_workspace_id("w");
    item.set_key_id("k");
    item.set_refund(true);
  }
  ASSERT_TRUE(Call([&](auto done) { rpc_.DoRelease(release, done); }).ok());

  v1::PeekRequest peek;
  peek.set_workspace_id("w");
  peek.set_key_id("k");
  peek.mutable_key_limits()->set_requests_per_minute(10);
  peek.mutable_key_limits()->set_concurrent_requests(5);
  v1::PeekResponse left;
  ASSERT_TRUE(Call([&](auto done) { rpc_.DoPeek(peek, left, done); }).ok());
  EXPECT_EQ(left.requests().remaining(), 9);
  EXPECT_EQ(left.concurrency().remaining(), 4);
  EXPECT_EQ(left.tokens().limit(), 0);

  clock_.Advance(20'000'000);
  v1::RenewRequest renew;
  for (const std::string& slot : {Slot(2), std::string("malformed"), Slot(8)}) {
    v1::RenewItem& item = *renew.add_items();
    item.set_lease_id(slot);
    item.set_workspace_id("w");
    item.set_key_id("k");
    item.mutable_key_limits()->set_concurrent_requests(5);
  }
  v1::RenewResponse renewed;
  ASSERT_TRUE(Call([&](auto done) { rpc_.DoRenew(renew, renewed, done); }).ok());
  ASSERT_EQ(renewed.restored_size(), 1);
  EXPECT_EQ(renewed.restored(0), Slot(8));
  clock_.Advance(20'000'000);
  EXPECT_EQ(store_.Sweep().slots, 2u);
}

// Each subject is reported separately, in the units of its limits, in any order of the items.
TEST_F(RateLimitRpcTest, UseIsToldOfEachSubjectInItsUnits) {
  clock_.Advance(90'000'000);
  v1::AcquireRequest request;
  for (uint64_t i = 1; i <= 4; ++i) {
    v1::AcquireItem& item = Add(request, i, 3);
    item.mutable_workspace_limits()->set_tokens_per_minute(1000);
    item.set_model("a/b");
    item.mutable_key_model_limits()->set_concurrent_requests(9);
    item.mutable_model_limits()->set_requests_per_minute(50);
    item.set_estimated_tokens(100);
  }
  v1::AcquireResponse response;
  ASSERT_TRUE(Acquire(request, response).ok());
  v1::GetUseRequest ask;
  const auto add = [&](const char* workspace, const char* key, const char* model) {
    v1::UseItem& item = *ask.add_items();
    item.set_workspace_id(workspace);
    item.set_key_id(key);
    item.set_model(model);
    return item.mutable_limits();
  };
  add("w", "k", "")->set_requests_per_minute(3);
  add("", "", "a/b")->set_requests_per_minute(50);
  add("w", "", "")->set_tokens_per_minute(1000);
  add("w", "k", "a/b")->set_concurrent_requests(9);
  add("w", "other", "")->set_requests_per_minute(3);
  v1::GetUseResponse use;
  ASSERT_TRUE(Call([&](auto done) { rpc_.DoGetUse(ask, use, done); }).ok());
  EXPECT_TRUE(use.minutes_known());
  EXPECT_EQ(use.minute_ms(), clock_.MonotonicUs() % 60'000'000 / 1000);
  EXPECT_EQ(use.counted_ms(), 90'000);
  ASSERT_EQ(use.results_size(), 5);
  const auto& key = use.results(0);
  EXPECT_EQ(key.requests().remaining(), 0);
  EXPECT_EQ(key.tokens().limit(), 0);
  ASSERT_EQ(key.minutes_size(), 1);
  EXPECT_EQ(key.minutes(0).minutes_ago(), 0);
  EXPECT_EQ(key.minutes(0).requests(), 3);
  EXPECT_EQ(key.minutes(0).requests_peak(), 3);
  EXPECT_EQ(key.minutes(0).refused_by_requests(), 1);
  EXPECT_EQ(use.results(1).minutes(0).requests(), 3) << "the model's capacity";
  EXPECT_EQ(use.results(1).minutes(0).refused_by_requests(), 0);
  EXPECT_EQ(use.results(2).minutes(0).tokens(), 300);
  EXPECT_EQ(use.results(2).minutes(0).tokens_peak(), 300);
  EXPECT_EQ(use.results(2).minutes(0).requests_peak(), 0) << "no such limit";
  EXPECT_EQ(use.results(3).minutes(0).concurrency_peak(), 3);
  EXPECT_EQ(use.results(4).minutes_size(), 0);
  EXPECT_EQ(use.results(4).requests().remaining(), 3);
  clock_.Advance(60'000'000);
  use.Clear();
  ASSERT_TRUE(Call([&](auto done) { rpc_.DoGetUse(ask, use, done); }).ok());
  EXPECT_EQ(use.results(0).minutes(0).minutes_ago(), 1);
}

TEST_F(RateLimitRpcTest, AQuestionForTooMuchUseIsRefused) {
  v1::GetUseRequest ask;
  for (int i = 0; i < 1001; ++i) ask.add_items()->set_workspace_id("w");
  v1::GetUseResponse use;
  EXPECT_EQ(Call([&](auto done) { rpc_.DoGetUse(ask, use, done); }).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

// Each subject (key, workspace, key and model, workspace and model, capacity of the model) refuses
// by itself and is named. A refusal takes nothing from the other subjects.
TEST_F(RateLimitRpcTest, EachOfTheFiveSubjectsRefusesAndTheOthersTakeNothing) {
  const auto limits_of = [](v1::AcquireItem& item, int subject) {
    return subject == v1::LIMIT_SUBJECT_KEY               ? item.mutable_key_limits()
           : subject == v1::LIMIT_SUBJECT_WORKSPACE       ? item.mutable_workspace_limits()
           : subject == v1::LIMIT_SUBJECT_KEY_MODEL       ? item.mutable_key_model_limits()
           : subject == v1::LIMIT_SUBJECT_WORKSPACE_MODEL ? item.mutable_workspace_model_limits()
                                                          : item.mutable_model_limits();
  };
  for (int tight = v1::LIMIT_SUBJECT_KEY; tight <= v1::LIMIT_SUBJECT_MODEL; ++tight) {
    const std::string name = std::to_string(tight);
    uint64_t slot = static_cast<uint64_t>(tight) * 1000;
    const auto acquire = [&](bool limited) {
      v1::AcquireRequest request;
      v1::AcquireItem& item = *request.add_items();
      item.set_lease_id(Slot(++slot));
      item.set_workspace_id("w" + name);
      item.set_key_id("k" + name);
      item.set_model("m/" + name);
      for (int subject = v1::LIMIT_SUBJECT_KEY; subject <= v1::LIMIT_SUBJECT_MODEL; ++subject) {
        if (subject == tight && !limited) continue;
        limits_of(item, subject)->set_requests_per_minute(subject == tight ? 2 : 10);
      }
      v1::AcquireResponse response;
      EXPECT_TRUE(Acquire(request, response).ok());
      return response.results(0);
    };
    EXPECT_TRUE(acquire(true).granted());
    EXPECT_TRUE(acquire(true).granted());
    for (int i = 0; i < 20; ++i) {
      const v1::AcquireResult refused = acquire(true);
      EXPECT_FALSE(refused.granted());
      EXPECT_EQ(refused.denied_subject(), tight);
      EXPECT_EQ(refused.retry_after_ms(), 30'000);
    }
    // The other subjects have a limit of ten: two are used, and this is the third.
    EXPECT_EQ(acquire(false).requests().remaining(), 7);
  }
}

TEST_F(RateLimitRpcTest, TheCapacityOfAModelIsSharedByWorkspacesAndReleased) {
  const auto acquire = [&](const std::string& workspace, uint64_t slot) {
    v1::AcquireRequest request;
    v1::AcquireItem& item = *request.add_items();
    item.set_lease_id(Slot(slot));
    item.set_workspace_id(workspace);
    item.set_key_id("k");
    item.set_model("m/a");
    item.mutable_key_limits()->set_requests_per_minute(100);
    item.mutable_model_limits()->set_concurrent_requests(2);
    v1::AcquireResponse response;
    EXPECT_TRUE(Acquire(request, response).ok());
    return response.results(0).granted();
  };
  EXPECT_TRUE(acquire("a", 1));
  EXPECT_TRUE(acquire("b", 2));
  EXPECT_FALSE(acquire("c", 3));
  v1::ReleaseRequest release;
  v1::ReleaseItem& item = *release.add_items();
  item.set_lease_id(Slot(1));
  item.set_workspace_id("a");
  item.set_model("m/a");
  EXPECT_TRUE(Call([&](auto done) { rpc_.DoRelease(release, done); }).ok());
  EXPECT_TRUE(acquire("c", 3));
  EXPECT_FALSE(acquire("a", 4));
}

// A memory store that fails the releases of one scope.
class LosingStore : public MemoryStore {
 public:
  using MemoryStore::MemoryStore;
  void Release(std::string scope, const Id& slot, int64_t actual_tokens, bool refund,
               StoreDone<bool> done) override {
    if (scope == lost_scope) return done(Fail{StoreError("lost")});
    MemoryStore::Release(std::move(scope), slot, actual_tokens, refund, std::move(done));
  }
  std::string lost_scope;
};

// The caller repeats a failed call. So the call must fail if any part failed; otherwise a slot of
// the model's capacity would stay taken until its slot expires.
TEST_F(RateLimitRpcTest, AReleaseFailsUntilBothTheWorkspaceAndTheModelAreReleased) {
  LosingStore store(clock_, 30'000'000);
  RateLimitRpc rpc(store);
  v1::AcquireRequest request;
  v1::AcquireItem& taken = Add(request, 1, 10);
  taken.set_model("m/a");
  taken.mutable_model_limits()->set_concurrent_requests(1);
  v1::AcquireResponse response;
  ASSERT_TRUE(Call([&](auto done) { rpc.DoAcquire(request, response, done); }).ok());
  ASSERT_TRUE(response.results(0).granted());
  v1::ReleaseRequest release;
  v1::ReleaseItem& item = *release.add_items();
  item.set_lease_id(Slot(1));
  item.set_workspace_id("w");
  item.set_model("m/a");
  const auto code = [&] {
    return Call([&](auto done) { rpc.DoRelease(release, done); }).error_code();
  };
  for (const char* scope : {"m:m/a", "w:w"}) {
    store.lost_scope = scope;
    EXPECT_EQ(code(), grpc::StatusCode::UNAVAILABLE) << scope;
  }
  store.lost_scope.clear();
  EXPECT_EQ(code(), grpc::StatusCode::OK);
  EXPECT_EQ(store.Sweep().slots, 0u);
}

}  // namespace
}  // namespace tollgate::ratelimit
