#include "services/ratelimit/rpc/ratelimit_rpc.h"

#include <gtest/gtest.h>

namespace tollgate::ratelimit {
namespace {

class RateLimitRpcTest : public ::testing::Test {
 protected:
  static std::string Lease(uint64_t n) { return Id::Make(1, 0, n).ToBytes(); }
  static v1::AcquireItem& Add(v1::AcquireRequest& request, uint64_t lease, int64_t per_minute) {
    v1::AcquireItem& item = *request.add_items();
    item.set_lease_id(Lease(lease));
    item.set_workspace_id("w");
    item.set_key_id("k");
    item.mutable_key_limits()->set_requests_per_minute(per_minute);
    return item;
  }

  ManualClock clock_;
  LimiterStore store_{clock_, 30'000'000};
  RateLimitRpc rpc_{store_};
};

TEST_F(RateLimitRpcTest, ResultsAreInTheOrderOfTheRequest) {
  v1::AcquireRequest request;
  for (uint64_t i = 0; i < 4; ++i) Add(request, i + 1, 2);
  Add(request, 9, 0).set_key_id("other");
  v1::AcquireResponse response;
  ASSERT_TRUE(rpc_.DoAcquire(request, response).ok());
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
  ASSERT_TRUE(rpc_.DoAcquire(request, response).ok());
  EXPECT_EQ(response.results(1).denied_by(), v1::LIMIT_KIND_CONCURRENCY);
  EXPECT_EQ(response.results(3).denied_by(), v1::LIMIT_KIND_TOKENS);
}

TEST_F(RateLimitRpcTest, AnInvalidMessageTakesNothing) {
  v1::AcquireRequest request;
  Add(request, 1, 10);
  Add(request, 2, 10).set_lease_id("short");
  v1::AcquireResponse response;
  EXPECT_EQ(rpc_.DoAcquire(request, response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(store_.Sweep().leases, 0u);
  request.mutable_items(1)->set_lease_id(std::string(16, '\0'));
  EXPECT_EQ(rpc_.DoAcquire(request, response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(RateLimitRpcTest, ReleaseRenewAndPeek) {
  v1::AcquireRequest request;
  Add(request, 1, 10).mutable_key_limits()->set_concurrent_requests(5);
  Add(request, 2, 10).mutable_key_limits()->set_concurrent_requests(5);
  v1::AcquireResponse response;
  ASSERT_TRUE(rpc_.DoAcquire(request, response).ok());

  v1::ReleaseRequest release;
  for (const std::string& lease : {Lease(1), Lease(7), std::string("malformed")}) {
    v1::ReleaseItem& item = *release.add_items();
    item.set_lease_id(lease);
    item.set_workspace_id("w");
    item.set_key_id("k");
    item.set_refund(true);
  }
  ASSERT_TRUE(rpc_.DoRelease(release).ok());

  v1::PeekRequest peek;
  peek.set_workspace_id("w");
  peek.set_key_id("k");
  peek.mutable_key_limits()->set_requests_per_minute(10);
  peek.mutable_key_limits()->set_concurrent_requests(5);
  v1::PeekResponse left;
  ASSERT_TRUE(rpc_.DoPeek(peek, left).ok());
  EXPECT_EQ(left.requests().remaining(), 9);
  EXPECT_EQ(left.concurrency().remaining(), 4);
  EXPECT_EQ(left.tokens().limit(), 0);

  clock_.Advance(20'000'000);
  v1::RenewRequest renew;
  renew.add_lease_ids(Lease(2));
  renew.add_lease_ids("malformed");
  ASSERT_TRUE(rpc_.DoRenew(renew).ok());
  clock_.Advance(20'000'000);
  EXPECT_EQ(store_.Sweep().leases, 1u);
}

}  // namespace
}  // namespace tollgate::ratelimit
