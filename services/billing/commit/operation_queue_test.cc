// The work for a batch grows with its size, not with the size of the queue (docs/design/ledger.md
// 10).
#include "services/billing/commit/operation_queue.h"

#include <gtest/gtest.h>

#include "common/base/ledger_shard.h"
#include "services/billing/domain/testing/ledger_world.h"

namespace tollgate::billing {
namespace {

struct OperationQueueTest : ::testing::Test {
  OperationQueue queue;

  void Push(std::string workspace, int64_t number, bool settle = true) {
    auto call = std::make_shared<Call>();
    call->done = [](auto) {};
    Settle op;
    op.workspace = workspace;
    op.sequence = number;
    Authorize authorize;
    authorize.workspace = workspace;
    authorize.prompt_bound = number;
    call->operations.push_back(settle ? Operation(op) : Operation(authorize));
    ASSERT_TRUE(queue.Push({std::move(call), 0}));
  }
  OperationQueue::Batch Take(size_t limit = 256, int64_t now_us = 0) {
    OperationQueue::Batch batch;
    queue.Take(limit, now_us, batch);
    return batch;
  }
  static std::string Show(const OperationQueue::Batch& batch) {
    std::string text;
    for (const Operation& op : batch.operations) {
      const auto* settle = std::get_if<Settle>(&op);
      text += WorkspaceOf(op) +
              std::to_string(settle ? settle->sequence : std::get<Authorize>(op).prompt_bound) +
              " ";
    }
    return text;
  }
};

TEST_F(OperationQueueTest, ABusyWorkspaceWith4000OperationsCostsNothing) {
  for (int i = 0; i < 4000; ++i) Push("busy", i, i % 2 == 0);
  const OperationQueue::Batch running = Take();
  ASSERT_EQ(running.operations.size(), 256U);
  const int64_t before = queue.steps();
  for (int i = 0; i < 1000; ++i) {
    Push("other", i);
    const OperationQueue::Batch batch = Take();
    EXPECT_EQ(batch.operations.size(), 1U);
    queue.Release(batch);
  }
  EXPECT_LT(queue.steps() - before, 3000) << "each batch visits what it takes";
  // Takes all, in batches of 256: each operation is visited once.
  queue.Release(running);
  size_t taken = running.operations.size();
  const int64_t start = queue.steps();
  while (true) {
    const OperationQueue::Batch batch = Take();
    if (batch.sources.empty()) break;
    taken += batch.operations.size();
    queue.Release(batch);
  }
  EXPECT_EQ(taken, 4000U);
  EXPECT_LT(queue.steps() - start, 5000);
  EXPECT_EQ(queue.size(), 0U);
}

TEST_F(OperationQueueTest, SettlesGoFirstAndEachWorkspaceKeepsItsOrder) {
  Push("a", 1, false);
  Push("a", 2);
  Push("b", 3, false);
  Push("a", 4);
  Push("b", 5);
  EXPECT_EQ(Show(Take()), "a2 a4 b5 a1 b3 ");
}

TEST_F(OperationQueueTest, AWorkspaceWithThousandsTakesTurnsWithOthers) {
  for (int i = 0; i < 1000; ++i) Push("a", i);
  Push("b", 1);
  const std::string taken = Show(Take());
  EXPECT_NE(taken.find("b1"), std::string::npos);
}

TEST_F(OperationQueueTest, NoTwoBatchesShareAWorkspace) {
  Push("a", 1);
  const OperationQueue::Batch first = Take();
  Push("a", 2);
  Push("b", 3);
  EXPECT_EQ(Show(Take()), "b3 ");
  EXPECT_EQ(Show(Take()), "");
  queue.Release(first);
  EXPECT_EQ(Show(Take()), "a2 ");
}

// On a distributed database (docs/adr/0040). These workspaces are in different ledger shards.
TEST_F(OperationQueueTest, ABatchOfOneShardTakesTurnsWithTheOthers) {
  ASSERT_NE(LedgerShard("a"), LedgerShard("b"));
  Push("a", 1, false);
  Push("b", 2);
  queue.SetOneShard(true);
  Push("a", 3);
  Push("b", 4);
  const OperationQueue::Batch first = Take();
  const OperationQueue::Batch second = Take();
  const std::string taken = Show(first) + "| " + Show(second);
  EXPECT_TRUE(taken == "a3 a1 | b2 b4 " || taken == "b2 b4 | a3 a1 ") << taken;
  EXPECT_EQ(Show(Take()), "");
  Push("a", 5);
  EXPECT_EQ(Show(Take()), "") << "the workspace is in a batch";
  queue.Release(first);
  queue.Release(second);
  EXPECT_EQ(Show(Take()), "a5 ");
  EXPECT_EQ(queue.size(), 0U);
}

TEST_F(OperationQueueTest, AShardWithThousandsDoesNotHoldUpOthers) {
  queue.SetOneShard(true);
  for (int i = 0; i < 1000; ++i) Push("a", i);
  Push("b", 1, false);
  const OperationQueue::Batch first = Take(100);
  EXPECT_EQ(first.operations.size(), 100U);
  EXPECT_EQ(Show(Take(100)), "b1 ");
}

TEST_F(OperationQueueTest, IsolatedWorkspacesOfOneShardShareABatch) {
  queue.SetOneShard(true);
  for (const char* workspace : {"a", "b"}) {
    queue.Isolate(workspace, 0, 0, 0);
    Push(workspace, 1);
  }
  const OperationQueue::Batch first = Take();
  EXPECT_EQ(Show(first), "a1 ");
  EXPECT_EQ(Show(Take()), "") << "one isolated batch at a time";
  queue.Release(first);
  EXPECT_EQ(Show(Take()), "b1 ");
  EXPECT_TRUE(queue.Heal("a", 1)) << "at_least_us was zero";
}

TEST_F(OperationQueueTest, BackFromOneShardABatchTakesAll) {
  queue.SetOneShard(true);
  Push("a", 1);
  Push("b", 2);
  queue.SetOneShard(false);
  EXPECT_EQ(Take().operations.size(), 2U);
}

TEST_F(OperationQueueTest, AnAuthorizeWhoseCallIsOverIsDropped) {
  Push("a", 1, false);
  auto over = std::make_shared<Call>();
  over->operations.emplace_back(Authorize{});
  ASSERT_TRUE(queue.Push({over, 0}));
  EXPECT_EQ(Show(Take()), "a1 ");
  EXPECT_EQ(queue.size(), 0U);
}

TEST_F(OperationQueueTest, WhatIsPutBackComesFirstAndInOrder) {
  Push("a", 1);
  Push("a", 2);
  OperationQueue::Batch batch = Take();
  Push("a", 3);
  queue.Isolate("a", 0, 100);
  queue.PutBack(batch.sources, batch.operations);
  queue.Release(batch);
  Push("b", 4);
  EXPECT_EQ(Show(Take(256, 50)), "b4 ") << "not yet";
  const OperationQueue::Batch alone = Take(256, 100);
  EXPECT_TRUE(alone.isolated);
  EXPECT_EQ(Show(alone), "a1 a2 a3 ");
}

TEST_F(OperationQueueTest, IsolatedWorkspacesAreInOneBatchAtATimeUntilTheyHeal) {
  for (const char* workspace : {"a", "b"}) EXPECT_TRUE(queue.Isolate(workspace, 0, 0));
  EXPECT_FALSE(queue.Isolate("a", 0, 0)) << "it was isolated already";
  Push("a", 1);
  const OperationQueue::Batch first = Take();
  EXPECT_EQ(Show(first), "a1 ");
  Push("b", 2);
  Push("c", 3);
  EXPECT_EQ(Show(Take()), "c3 ");
  EXPECT_FALSE(queue.Heal("a", 1'000'000)) << "too early";
  EXPECT_TRUE(queue.Heal("a", 6'000'000));
  queue.Release(first);
  EXPECT_EQ(Show(Take()), "b2 ");
  EXPECT_EQ(queue.isolated(), 1U);
}

// Value of the gauge that the alert uses. It excludes a workspace that failed once and gets no
// further operations.
TEST_F(OperationQueueTest, AWorkspaceFailsUntilItHealsOrForFiveMinutesAfterItsLastFailure) {
  constexpr int64_t kMinuteUs = 60'000'000;
  EXPECT_EQ(queue.Failing(0), 0U);
  queue.Isolate("a", 0, 0);
  queue.Isolate("b", 0, 0);
  queue.Isolate("a", 4 * kMinuteUs, 0);
  EXPECT_EQ(queue.Failing(5 * kMinuteUs), 2U);
  EXPECT_EQ(queue.Failing(6 * kMinuteUs), 1U) << "b has not failed again";
  EXPECT_EQ(queue.isolated(), 2U) << "it keeps its separate batches";
  ASSERT_TRUE(queue.Heal("a", 6 * kMinuteUs));
  EXPECT_EQ(queue.Failing(6 * kMinuteUs), 0U);
}

}  // namespace
}  // namespace tollgate::billing
