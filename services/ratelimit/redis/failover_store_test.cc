#include "services/ratelimit/redis/failover_store.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <future>

#include "tests/support/redis.h"

namespace tollgate::ratelimit {
namespace {

// The client and store of one ratelimit process.
struct Node {
  std::unique_ptr<RedisClient> client;
  std::unique_ptr<FailoverStore> store;
};

class FailoverStoreTest : public ::testing::Test {
 protected:
  // Timeouts of Redis: short, as in the product, where it hangs; otherwise long enough for a busy
  // machine.
  static constexpr int64_t kShortUs = 100'000, kLongUs = 10'000'000;

  void Start(const std::string& url, int nodes, int64_t replicas = 0,
             int64_t timeout_us = kLongUs) {
    for (int i = 0; i < nodes; ++i) {
      Node node;
      auto client = RedisClient::Make({.url = *ParseRedisUrl(url), .timeout_us = timeout_us});
      ASSERT_TRUE(client);
      node.client = std::move(*client);
      node.client->Start();
      node.store = std::make_unique<FailoverStore>(
          *node.client, SystemClock::Get(),
          FailoverOptions{.redis_id = "redis", .replicas = replicas});
      nodes_.push_back(std::move(node));
    }
  }
  void TearDown() override {
    for (Node& node : nodes_) node.client->Stop();
  }
  bool WaitForCount(int64_t count) {
    return test::WaitUntil(
        [&] {
          for (Node& node : nodes_) node.store->Beat();
          for (Node& node : nodes_) {
            if (!node.store->counted() || node.store->replicas() != count) return false;
          }
          return true;
        },
        60'000, 50);
  }
  static AcquireOutcome Acquire(Node& node, const Limits& limits,
                                const std::string& subject = "all") {
    auto promise = std::make_shared<std::promise<AcquireOutcome>>();
    auto answer = promise->get_future();
    node.store->Acquire(
        {.slot = Id::New(), .scope = "w:a", .subjects = {{Who::kWorkspace, subject, limits}}},
        [promise](auto outcome) {
          promise->set_value(outcome.ok() ? *outcome : AcquireOutcome());
        });
    if (answer.wait_for(std::chrono::seconds(60)) != std::future_status::ready) {
      ADD_FAILURE() << "no answer";
      return {};
    }
    return answer.get();
  }
  // Sends requests to the processes in turn and returns how many were granted.
  int Burst(int requests, const Limits& limits) {
    int granted = 0;
    for (int i = 0; i < requests; ++i) {
      const AcquireOutcome outcome =
          Acquire(nodes_[static_cast<size_t>(i) % nodes_.size()], limits);
      granted += outcome.granted() ? 1 : 0;
      local_ += outcome.local_share ? 1 : 0;
    }
    return granted;
  }
  // A subject without a rate limit, in the same hash slot: does not affect the other subjects.
  static AcquireOutcome AcquireElsewhere(Node& node) {
    return Acquire(node, {.concurrent_requests = 1'000'000}, "elsewhere");
  }
  bool WaitForRedis() {
    return test::WaitUntil(
        [&] {
          for (Node& node : nodes_) {
            if (AcquireElsewhere(node).local_share) return false;
          }
          return true;
        },
        60'000, 50);
  }
  static double SecondsSince(int64_t from_us) {
    return static_cast<double>(test::MonotonicUs() - from_us) / 1e6;
  }

  std::vector<Node> nodes_;
  int local_ = 0;  // decisions by a local share
};

// An outage neither admits nor refuses everything, and grants no second burst: 1.2 times the
// remaining limit is divided.
TEST_F(FailoverStoreTest, AKilledRedisLeavesAShareOfWhatWasLeft) {
  const auto server = testing::TestRedis::Start();
  ASSERT_NE(server, nullptr);
  Start(server->url(), 3);
  ASSERT_TRUE(WaitForRedis());
  ASSERT_TRUE(WaitForCount(3));
  const Limits limits{.requests_per_minute = 600};
  const int64_t from_us = test::MonotonicUs();
  ASSERT_EQ(Burst(300, limits), 300);
  EXPECT_EQ(local_, 0);
  server->process().Kill();
  const int64_t killed_us = test::MonotonicUs();
  // Half of the limit is used, so half of 1.2 times the limit is left: 360, plus ten a second.
  const int granted = Burst(1500, limits);
  EXPECT_EQ(local_, 1500);
  EXPECT_GE(granted, 320);
  EXPECT_LE(granted, 450 + 12 * SecondsSince(from_us));
  // Redis comes back empty. Grants during the outage still count, so there is no further burst.
  ASSERT_TRUE(server->Run());
  ASSERT_TRUE(WaitForRedis());
  local_ = 0;
  const int again = Burst(300, limits);
  EXPECT_LE(again, 60 + 12 * SecondsSince(killed_us));
  EXPECT_EQ(local_, 0);
}

TEST_F(FailoverStoreTest, AFlushedRedisGrantsNoSecondBurst) {
  const auto server = testing::TestRedis::Start();
  ASSERT_NE(server, nullptr);
  Start(server->url(), 3);
  ASSERT_TRUE(WaitForRedis());
  ASSERT_TRUE(WaitForCount(3));
  const Limits limits{.requests_per_minute = 120};
  const int64_t from_us = test::MonotonicUs();
  ASSERT_GE(Burst(150, limits), 120);
  ASSERT_EQ(server->Command({"FLUSHALL"}), "OK");
  const int again = Burst(100, limits);
  EXPECT_LE(again, 10 + 2.4 * SecondsSince(from_us)) << "two a second";
  EXPECT_EQ(local_, 0);
}

// After SIGSTOP connections stay open and nothing answers. Requests wait for the timeout at first,
// then not at all.
TEST_F(FailoverStoreTest, AStoppedRedisIsLeftAndTakenBack) {
  const auto server = testing::TestRedis::Start();
  ASSERT_NE(server, nullptr);
  Start(server->url(), 2, 0, kShortUs);
  ASSERT_TRUE(WaitForRedis());
  ASSERT_TRUE(WaitForCount(2));
  ASSERT_EQ(Burst(10, {.requests_per_minute = 1000}), 10);
  local_ = 0;  // Redis may have been slower than the short time-out before, too
  server->process().Signal(SIGSTOP);
  const int64_t from_us = test::MonotonicUs();
  EXPECT_EQ(Burst(200, {.requests_per_minute = 100'000}), 200);
  EXPECT_LE(SecondsSince(from_us), 15) << "20 if each waited";
  EXPECT_EQ(local_, 200);
  server->process().Signal(SIGCONT);
  EXPECT_TRUE(WaitForRedis());
}

// A Redis that hung has kept its counts, but does not know what was granted during that time.
TEST_F(FailoverStoreTest, WhatWasGrantedWhileRedisStoodStillCountsAfterARefusal) {
  const auto server = testing::TestRedis::Start();
  ASSERT_NE(server, nullptr);
  Start(server->url(), 1, 1, kShortUs);
  ASSERT_TRUE(WaitForRedis());
  const Limits limits{.requests_per_minute = 6};
  const int64_t from_us = test::MonotonicUs();
  ASSERT_EQ(Burst(3, limits), 3);
  server->process().Signal(SIGSTOP);
  // The connection is closed after 0.4 s of silence, so later calls do not reach Redis afterwards.
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(AcquireElsewhere(nodes_[0]).local_share);
  const int meanwhile = Burst(10, limits);
  EXPECT_GE(meanwhile, 3);
  EXPECT_LE(meanwhile, 3 + static_cast<int>(SecondsSince(from_us) / 10));
  server->process().Signal(SIGCONT);
  ASSERT_TRUE(WaitForRedis());
  local_ = 0;
  // Redis alone would grant three more. One request recovers in ten seconds.
  const int again = Burst(10, limits);
  EXPECT_LE(again, std::max(1, static_cast<int>(SecondsSince(from_us) / 10)));
  EXPECT_EQ(local_, 0);
}

// Without Redis since its start, a process neither admits nor refuses everything.
TEST_F(FailoverStoreTest, WithoutRedisFromTheStartItGrantsTheShareWithoutABurst) {
  Start("redis://" + test::TestPort().address(), 1, 4);
  EXPECT_EQ(nodes_[0].store->Share(1000), 300);
  EXPECT_EQ(nodes_[0].store->Share(1), 1);
  EXPECT_EQ(nodes_[0].store->Share(0), 0);
  const Limits limits{.requests_per_minute = 100'000};  // a share of 500 a second
  EXPECT_LE(Burst(100, limits), 100);
  int granted = 0;
  ASSERT_TRUE(test::WaitUntil([&] { return (granted += Burst(10, limits)) > 20; }, 60'000));
  EXPECT_LE(Burst(200, {.requests_per_minute = 60}), 2);
}

TEST_F(FailoverStoreTest, ProcessesThatLeaveAreNotCounted) {
  const auto server = testing::TestRedis::Start();
  ASSERT_NE(server, nullptr);
  Start(server->url(), 3);
  ASSERT_TRUE(WaitForRedis());
  ASSERT_TRUE(WaitForCount(3));
  nodes_.back().store->Leave();
  nodes_.back().client->Stop();
  nodes_.pop_back();
  EXPECT_TRUE(WaitForCount(2));
}

// The limiter follows when the sentinels name another master.
TEST_F(FailoverStoreTest, FollowsTheSentinels) {
  const auto group = testing::TestSentinels::Start();
  ASSERT_NE(group, nullptr);
  Start(group->url(), 2);
  ASSERT_TRUE(WaitForRedis());
  ASSERT_TRUE(WaitForCount(2));
  const Limits limits{.requests_per_minute = 600};
  const int64_t from_us = test::MonotonicUs();
  ASSERT_EQ(Burst(400, limits), 400);
  group->master->process().Kill();
  EXPECT_GT(Burst(100, limits), 0);
  EXPECT_GT(local_, 0);
  ASSERT_TRUE(
      test::WaitUntil([&] { return group->MasterPort() == group->replica->port(); }, 90'000, 50));
  ASSERT_TRUE(WaitForRedis());
  // The replica's counts are used, and grants during the failover count, too.
  const int again = Burst(600, limits);
  EXPECT_LE(again, 240 + 12 * SecondsSince(from_us)) << "ten a second";
}

// When one node of a cluster is killed, its replica takes over; the other slots work meanwhile.
TEST_F(FailoverStoreTest, FollowsTheClustersFailover) {
  const auto cluster = testing::TestRedisCluster::Start();
  ASSERT_NE(cluster, nullptr);
  Start(cluster->url(), 2);
  ASSERT_TRUE(WaitForRedis());
  ASSERT_TRUE(WaitForCount(2));
  const Limits limits{.requests_per_minute = 600};
  EXPECT_EQ(Burst(200, limits), 200);
  EXPECT_EQ(local_, 0);
  testing::TestRedis* master = cluster->MasterOf(SlotOf(RedisStore::TagOf("w:a")));
  ASSERT_NE(master, nullptr);
  master->process().Kill();
  EXPECT_GT(Burst(50, limits), 0);
  EXPECT_GT(local_, 0);
  ASSERT_TRUE(test::WaitUntil(
      [&] { return cluster->MasterOf(SlotOf(RedisStore::TagOf("w:a"))) != nullptr; }, 30'000, 100));
  EXPECT_TRUE(WaitForRedis());
}

}  // namespace
}  // namespace tollgate::ratelimit
