#include "services/billing/commit/group_commit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <set>

#include "services/billing/domain/testing/ledger_world.h"

namespace tollgate::billing {
namespace {

using sql::ErrorKind;
using sql::SqlError;
using sql::SqlResult;

// The state of a fake database, controlled by the test.
struct FakeDatabase {
  std::mutex mutex;
  std::condition_variable changed;
  bool blocked = false;
  std::vector<std::vector<Operation>> batches;  // in the order of their runs
  std::deque<ErrorKind> errors;                 // of the next runs
  bool reachable = true;
  std::multiset<std::string> running;  // workspaces
  bool overlapped = false;
  std::atomic<int> reconnects = 0;

  void Block(bool value) {
    const std::lock_guard lock(mutex);
    blocked = value;
    changed.notify_all();
  }
  void WaitForBatches(size_t count) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return batches.size() >= count; });
  }
};

// Operations with a number, to recognize them by.
Authorize NewAuthorize(int64_t number, std::string workspace = "ws") {
  Authorize op;
  op.workspace = std::move(workspace);
  op.prompt_bound = number;
  return op;
}
Settle NewSettle(int64_t number, std::string workspace = "ws") {
  Settle op;
  op.workspace = std::move(workspace);
  op.sequence = number;
  return op;
}
AddCredit NewAddCredit(int64_t number) { return MakeAddCredit("command", number); }

int64_t NumberOf(const Operation& operation) {
  if (const auto* authorize = std::get_if<Authorize>(&operation)) return authorize->prompt_bound;
  if (const auto* settle = std::get_if<Settle>(&operation)) return settle->sequence;
  return std::get<AddCredit>(operation).amount_nano_usd;
}

class FakeRunner : public BatchRunner {
 public:
  explicit FakeRunner(FakeDatabase& database) : db_(database) {}
  SqlResult<Applied> Run(std::span<const Operation> operations, int64_t now_us) override {
    std::unique_lock lock(db_.mutex);
    db_.batches.emplace_back(operations.begin(), operations.end());
    std::set<std::string> mine;
    for (const Operation& op : operations) mine.insert(WorkspaceOf(op));
    for (const std::string& workspace : mine) {
      if (db_.running.contains(workspace)) db_.overlapped = true;
      db_.running.insert(workspace);
    }
    db_.changed.notify_all();
    db_.changed.wait(lock, [this] { return !db_.blocked; });
    for (const std::string& workspace : mine) db_.running.erase(db_.running.find(workspace));
    if (!db_.errors.empty()) {
      const ErrorKind kind = db_.errors.front();
      db_.errors.pop_front();
      return Fail{SqlError{kind, "fake"}};
    }
    for (const Operation& op : operations) {
      const Settle* settle = std::get_if<Settle>(&op);
      if (settle && settle->engine == "bad") return Fail{SqlError{ErrorKind::kOther, "bad"}};
    }
    Applied applied;
    for (const Operation& op : operations) {
      Reply reply;
      reply.ok = true;
      reply.authorized_nano_usd = NumberOf(op);
      applied.replies.push_back(reply);
    }
    return applied;
  }
  SqlResult<void> Reconnect() override {
    ++db_.reconnects;
    const std::lock_guard lock(db_.mutex);
    if (!db_.reachable) return Fail{SqlError{ErrorKind::kConnection, "unreachable"}};
    return {};
  }

 private:
  FakeDatabase& db_;
};

// A disk that syncs when the test allows it.
class FakeSync : public sql::LogSync {
 public:
  explicit FakeSync(std::shared_future<void> go) : go_(std::move(go)) {}
  void Sync() override { go_.wait(); }

 private:
  std::shared_future<void> go_;
};

using PendingReplies = std::future<Result<std::vector<Reply>>>;

class GroupCommitTest : public ::testing::Test {
 protected:
  void TearDown() override {
    db.Block(false);
    group_commit.reset();
  }
  void Start(int workers = 1, std::unique_ptr<sql::LogSync> sync = nullptr) {
    std::vector<std::unique_ptr<BatchRunner>> runners;
    for (int i = 0; i < workers; ++i) runners.push_back(std::make_unique<FakeRunner>(db));
    group_commit =
        std::make_unique<GroupCommit>(options, clock, std::move(runners), nullptr, std::move(sync));
    group_commit->Start();
  }
  PendingReplies Submit(std::vector<Operation> operations) {
    auto promise = std::make_shared<std::promise<Result<std::vector<Reply>>>>();
    group_commit->Submit(std::move(operations), [promise](Result<std::vector<Reply>> result) {
      promise->set_value(std::move(result));
    });
    return promise->get_future();
  }
  static bool IsReady(PendingReplies& call) {
    return call.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }

  FakeDatabase db;
  GroupCommit::Options options;
  SystemClock& clock = SystemClock::Get();
  std::unique_ptr<GroupCommit> group_commit;
};

// docs/adr/0005: the reply to an authorize does not wait for the sync, all others do; the next
// batch does not wait either.
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
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (!group_commit->available() && std::chrono::steady_clock::now() < give_up)
    std::this_thread::yield();
  EXPECT_TRUE(Submit({NewAuthorize(1)}).get().ok());
}

TEST_F(GroupCommitTest, CallsTimeOutWhenTheDatabaseHangs) {
  options.call_timeout_ms = 100;
  Start();
  db.Block(true);
  auto running = Submit({NewAuthorize(1)});
  db.WaitForBatches(1);
  auto waiting = Submit({NewAuthorize(2)});
  EXPECT_EQ(running.get().error().id, ErrorId::kServiceUnavailable);
  EXPECT_EQ(waiting.get().error().id, ErrorId::kServiceUnavailable);
  auto settle = Submit({NewSettle(3)});
  db.Block(false);
  EXPECT_TRUE(settle.get().ok());
  // The hold of a call that has timed out is not opened.
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
  EXPECT_EQ(poison.get().error().id, ErrorId::kServerError);
}

TEST_F(GroupCommitTest, AClockThatStepsBackRefusesAuthorizesOnly) {
  ManualClock manual;
  std::vector<std::unique_ptr<BatchRunner>> runners;
  runners.push_back(std::make_unique<FakeRunner>(db));
  group_commit = std::make_unique<GroupCommit>(options, manual, std::move(runners));
  group_commit->Start();
  const int64_t before = group_commit->NowUs();
  EXPECT_TRUE(Submit({NewAuthorize(1)}).get().ok());
  manual.StepWall(-2'000'000);
  EXPECT_EQ(group_commit->NowUs(), before) << "the ledger's time never decreases";
  EXPECT_FALSE(Submit({NewAuthorize(1)}).get().ok());
  EXPECT_TRUE(Submit({NewSettle(1)}).get().ok());
  manual.StepWall(1'500'000);
  EXPECT_TRUE(Submit({NewAuthorize(1)}).get().ok());
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
