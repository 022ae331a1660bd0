#include "services/billing/commit/group_commit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <set>

#include "services/billing/commit/testing/fake_runner.h"

namespace tollgate::billing {
namespace {

using sql::ErrorKind;

// A disk that syncs when the test allows it to.
class FakeSync : public sql::LogSync {
 public:
  explicit FakeSync(std::shared_future<void> go) : go_(std::move(go)) {}
  void Sync() override { go_.wait(); }

 private:
  std::shared_future<void> go_;
};

// docs/adr/0005: the reply to an authorize does not wait for the sync, all other replies do. The
// next batch does not wait either.
TEST_F(GroupCommitTest, RepliesToSettlesWaitForTheSyncAndThoseToAuthorizesDoNot) {
  std::promise<void> disk;
  Start(1, std::make_unique<FakeSync>(disk.get_future().share()));
  PendingReplies settle = Submit({NewSettle(1)});
  PendingReplies hold = Submit({NewAuthorize(2)});
  EXPECT_TRUE(hold.get().ok());
  PendingReplies mixed = Submit({NewAuthorize(3), NewAddCredit(4)});
  EXPECT_TRUE(Submit({NewAuthorize(5)}).get().ok());
  EXPECT_EQ(settle.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  EXPECT_EQ(mixed.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  disk.set_value();
  EXPECT_TRUE(settle.get().ok());
  auto both = mixed.get();
  ASSERT_TRUE(both.ok());
  EXPECT_EQ((*both)[0].authorized_nano_usd, 3);
  EXPECT_EQ((*both)[1].authorized_nano_usd, 4);
}

TEST_F(GroupCommitTest, RepliesAreInTheOrderOfTheOperations) {
  Start();
  auto call = Submit({NewAuthorize(1), NewSettle(2), NewAuthorize(3)});
  auto replies = call.get();
  ASSERT_TRUE(replies.ok());
  for (int i = 0; i < 3; ++i) EXPECT_EQ((*replies)[i].authorized_nano_usd, i + 1);
}

TEST_F(GroupCommitTest, OperationsQueuedDuringACommitAreTheNextBatchSettlesFirst) {
  Start();
  db.Block(true);
  auto first = Submit({NewAuthorize(0)});
  db.WaitForBatches(1);
  std::vector<PendingReplies> calls;
  for (int i = 1; i <= 10; ++i) {
    calls.push_back(i % 2 ? Submit({NewAuthorize(i)}) : Submit({NewSettle(i)}));
  }
  EXPECT_FALSE(IsReady(first)) << "no reply before the commit";
  db.Block(false);
  for (PendingReplies& call : calls) EXPECT_TRUE(call.get().ok());
  ASSERT_EQ(db.batches.size(), 2U);
  EXPECT_EQ(db.batches[0].size(), 1U);
  std::vector<int64_t> order;
  for (const Operation& op : db.batches[1]) order.push_back(NumberOf(op));
  EXPECT_EQ(order, (std::vector<int64_t>{2, 4, 6, 8, 10, 1, 3, 5, 7, 9}));
}

TEST_F(GroupCommitTest, ABatchHasAtMost256Operations) {
  Start();
  db.Block(true);
  auto first = Submit({NewAuthorize(0)});
  db.WaitForBatches(1);
  auto large = Submit(std::vector<Operation>(600, NewSettle(1)));
  db.Block(false);
  ASSERT_TRUE(large.get().ok());
  ASSERT_EQ(db.batches.size(), 4U);
  EXPECT_EQ(db.batches[1].size(), 256U);
  EXPECT_EQ(db.batches[3].size(), 600U - 512U);
}

TEST_F(GroupCommitTest, AFullQueueRefusesAuthorizesAtOnceButAcceptsSettles) {
  options.queue_limit = 10;
  Start();
  db.Block(true);
  auto first = Submit({NewAuthorize(0)});
  db.WaitForBatches(1);
  std::vector<PendingReplies> waiting;
  for (int i = 0; i < 10; ++i) waiting.push_back(Submit({NewAuthorize(i)}));
  auto refused = Submit({NewAuthorize(1)});
  ASSERT_TRUE(IsReady(refused));
  const auto result = refused.get();
  EXPECT_EQ(result.error().id, ErrorId::kServiceUnavailable);
  EXPECT_GT(result.error().retry_after_ms, 0);
  auto settle = Submit({NewSettle(1)});
  EXPECT_FALSE(IsReady(settle));
  db.Block(false);
  EXPECT_TRUE(settle.get().ok());
  for (PendingReplies& call : waiting) EXPECT_TRUE(call.get().ok());
}

TEST_F(GroupCommitTest, NoTwoBatchesShareAWorkspace) {
  Start(4);
  std::vector<PendingReplies> calls;
  for (int i = 0; i < 2000; ++i) {
    calls.push_back(Submit({NewSettle(i, "ws" + std::to_string(i % 7)),
                            NewAuthorize(i, "ws" + std::to_string(i % 5))}));
  }
  for (PendingReplies& call : calls) EXPECT_TRUE(call.get().ok());
  EXPECT_FALSE(db.overlapped);
}

TEST_F(GroupCommitTest, OtherWorkspacesDoNotWaitForABusyOne) {
  Start(2);
  db.Block(true);
  auto first = Submit({NewSettle(1, "a")});
  db.WaitForBatches(1);
  auto same = Submit({NewSettle(2, "a")});
  auto other = Submit({NewSettle(3, "b")});
  db.WaitForBatches(2);
  {
    const std::lock_guard lock(db.mutex);
    EXPECT_EQ(db.batches[1].size(), 1U);
    EXPECT_EQ(WorkspaceOf(db.batches[1][0]), "b");
  }
  db.Block(false);
  EXPECT_TRUE(same.get().ok());
}

TEST_F(GroupCommitTest, ConflictsAreRetriedInternally) {
  db.errors = {ErrorKind::kRetry, ErrorKind::kRetry};
  Start();
  EXPECT_TRUE(Submit({NewAuthorize(1)}).get().ok());
  EXPECT_EQ(db.batches.size(), 3U);
  EXPECT_TRUE(group_commit->available());
}

TEST_F(GroupCommitTest, ABatchWithUnknownCommitIsRetried) {
  db.errors = {ErrorKind::kCommitUnknown};
  Start();
  EXPECT_TRUE(Submit({NewAuthorize(1)}).get().ok());
  EXPECT_EQ(db.batches.size(), 2U);
  EXPECT_EQ(db.reconnects, 2);  // at the start and after the error
}

TEST_F(GroupCommitTest, FailsClosedWhileTheDatabaseIsUnreachableAndRecovers) {
  options.call_timeout_ms = 60;
  options.reconnect_ms = 1;
  db.errors = {ErrorKind::kConnection};
  db.reachable = false;
  Start();
  auto first = Submit({NewAuthorize(1)});
  EXPECT_EQ(first.get().error().id, ErrorId::kServiceUnavailable);
  auto second = Submit({NewSettle(1)});
  EXPECT_TRUE(IsReady(second)) << "refused at once while the database is unreachable";
  EXPECT_FALSE(group_commit->available());
  {
    const std::lock_guard lock(db.mutex);
    db.reachable = true;
  }
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!group_commit->available() && std::chrono::steady_clock::now() < give_up)
    std::this_thread::yield();
  EXPECT_TRUE(group_commit->available());
  // The short timeout may also end one of these calls.
  bool answered = false;
  for (int i = 0; i < 1000 && !answered; ++i) answered = Submit({NewAuthorize(1)}).get().ok();
  EXPECT_TRUE(answered);
}

TEST_F(GroupCommitTest, CallsTimeOutWhenTheDatabaseHangs) {
  options.call_timeout_ms = 1'500;
  Start();
  db.Block(true);
  auto running = Submit({NewAuthorize(1)});
  db.WaitForBatches(1);
  auto waiting = Submit({NewAuthorize(2)});
  EXPECT_EQ(running.get().error().id, ErrorId::kServiceUnavailable);
  EXPECT_EQ(waiting.get().error().id, ErrorId::kServiceUnavailable);
  auto credit = Submit({NewAddCredit(2)});
  EXPECT_EQ(credit.get().error().id, ErrorId::kServiceUnavailable);
  auto settle = Submit({NewSettle(3)});
  db.Block(false);
  EXPECT_TRUE(settle.get().ok());
  // A call that has timed out opens no hold and adds no credit.
  for (const auto& batch : db.batches) {
    for (const Operation& op : batch) EXPECT_NE(NumberOf(op), 2);
  }
}

TEST_F(GroupCommitTest, OneBadOperationFailsAlone) {
  Start();
  db.Block(true);
  auto first = Submit({NewSettle(0)});
  db.WaitForBatches(1);
  auto good = Submit({NewSettle(1)});
  Settle bad = NewSettle(2);
  bad.engine = "bad";
  auto poison = Submit({bad});
  auto after = Submit({NewSettle(3)});
  db.Block(false);
  EXPECT_TRUE(good.get().ok());
  EXPECT_TRUE(after.get().ok());
  const auto failed = poison.get();
  ASSERT_TRUE(failed.ok());
  EXPECT_EQ((*failed)[0].denied_by, Deny::kUnavailable);
}

TEST_F(GroupCommitTest, AClockThatStepsBackStopsNobody) {
  ManualClock manual;
  std::vector<std::unique_ptr<BatchRunner>> runners;
  runners.push_back(std::make_unique<FakeRunner>(db));
  group_commit = std::make_unique<GroupCommit>(options, manual, std::move(runners));
  group_commit->Start();
  const int64_t before = group_commit->NowUs();
  EXPECT_TRUE(Submit({NewAuthorize(1)}).get().ok());
  manual.StepWall(-3'600'000'000);
  EXPECT_EQ(group_commit->NowUs(), before) << "the ledger's time never decreases";
  EXPECT_TRUE(Submit({NewAuthorize(1)}).get().ok());
  EXPECT_TRUE(Submit({NewSettle(1)}).get().ok());
}

TEST_F(GroupCommitTest, StopFinishesEveryCall) {
  Start();
  db.Block(true);
  auto running = Submit({NewAuthorize(1)});
  db.WaitForBatches(1);
  auto waiting = Submit({NewAuthorize(2)});
  std::thread stopper([this] { group_commit->Stop(); });
  db.Block(false);
  stopper.join();
  EXPECT_TRUE(running.get().ok());
  (void)waiting.get();  // with replies or an error
  EXPECT_FALSE(Submit({NewSettle(1)}).get().ok());
}

}  // namespace
}  // namespace tollgate::billing
