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

// A database that does what the test says.
struct FakeDatabase {
  std::mutex mutex;
  std::condition_variable changed;
  bool blocked = false;
  std::vector<std::vector<Op>> batches;  // as they were run
  std::deque<ErrorKind> errors;          // of the next runs
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

class FakeRunner : public BatchRunner {
 public:
  explicit FakeRunner(FakeDatabase& database) : db_(database) {}
  SqlResult<Applied> Run(std::span<const Op> ops, int64_t now_us) override {
    std::unique_lock lock(db_.mutex);
    db_.batches.emplace_back(ops.begin(), ops.end());
    std::set<std::string> mine;
    for (const Op& op : ops) mine.insert(op.workspace);
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
    for (const Op& op : ops) {
      if (op.reason == "bad") return Fail{SqlError{ErrorKind::kOther, "bad"}};
    }
    Applied applied;
    for (const Op& op : ops) {
      Reply reply;
      reply.ok = true;
      reply.authorized = op.amount;
      applied.replies.push_back(reply);
    }
    return applied;
  }
  SqlResult<void> Reconnect() override {
    ++db_.reconnects;
    const std::lock_guard lock(db_.mutex);
    if (!db_.reachable) return Fail{SqlError{ErrorKind::kConnection, "away"}};
    return {};
  }

 private:
  FakeDatabase& db_;
};

// A disk that flushes when the test lets it.
class FakeSync : public sql::LogSync {
 public:
  explicit FakeSync(std::shared_future<void> go) : LogSync(""), go_(std::move(go)) {}
  void Sync() override { go_.wait(); }

 private:
  std::shared_future<void> go_;
};

using Answer = std::future<Result<std::vector<Reply>>>;

class GroupCommitTest : public ::testing::Test {
 protected:
  void TearDown() override {
    db.Block(false);
    engine.reset();
  }
  void Start(int workers = 1, std::unique_ptr<sql::LogSync> sync = nullptr) {
    std::vector<std::unique_ptr<BatchRunner>> runners;
    for (int i = 0; i < workers; ++i) runners.push_back(std::make_unique<FakeRunner>(db));
    engine =
        std::make_unique<GroupCommit>(options, clock, std::move(runners), nullptr, std::move(sync));
    engine->Start();
  }
  Answer Submit(std::vector<Op> ops) {
    auto promise = std::make_shared<std::promise<Result<std::vector<Reply>>>>();
    engine->Submit(std::move(ops), [promise](Result<std::vector<Reply>> result) {
      promise->set_value(std::move(result));
    });
    return promise->get_future();
  }
  static Op Numbered(OpKind kind, int64_t number, std::string workspace = "ws") {
    Op op;
    op.kind = kind;
    op.amount = number;
    op.workspace = std::move(workspace);
    return op;
  }
  static bool Answered(Answer& answer) {
    return answer.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }

  FakeDatabase db;
  GroupCommit::Options options;
  SystemClock& clock = SystemClock::Get();
  std::unique_ptr<GroupCommit> engine;
};

// docs/adr/0005: a hold is told at once; what promises something waits for the disk, and the next
// batches do not wait for either.
TEST_F(GroupCommitTest, SettlementsWaitForTheSyncAndHoldsDoNot) {
  std::promise<void> disk;
  Start(1, std::make_unique<FakeSync>(disk.get_future().share()));
  Answer settle = Submit({Numbered(OpKind::kSettle, 1)});
  Answer hold = Submit({Numbered(OpKind::kAuthorize, 2)});
  EXPECT_TRUE(hold.get().ok());
  Answer mixed = Submit({Numbered(OpKind::kAuthorize, 3), Numbered(OpKind::kAddCredit, 4)});
  EXPECT_TRUE(Submit({Numbered(OpKind::kAuthorize, 5)}).get().ok());
  EXPECT_EQ(settle.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  EXPECT_EQ(mixed.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  disk.set_value();
  EXPECT_TRUE(settle.get().ok());
  auto both = mixed.get();
  ASSERT_TRUE(both.ok());
  EXPECT_EQ((*both)[0].authorized, 3);
  EXPECT_EQ((*both)[1].authorized, 4);
}

TEST_F(GroupCommitTest, RepliesStandInTheOrderOfTheOperations) {
  Start();
  auto answer = Submit({Numbered(OpKind::kAuthorize, 1), Numbered(OpKind::kSettle, 2),
                        Numbered(OpKind::kAuthorize, 3)});
  auto replies = answer.get();
  ASSERT_TRUE(replies.ok());
  for (int i = 0; i < 3; ++i) EXPECT_EQ((*replies)[i].authorized, i + 1);
}

TEST_F(GroupCommitTest, WhatWaitsDuringACommitIsTheNextBatchWithSettlesFirst) {
  Start();
  db.Block(true);
  auto first = Submit({Numbered(OpKind::kAuthorize, 0)});
  db.WaitForBatches(1);
  std::vector<Answer> answers;
  for (int i = 1; i <= 10; ++i) {
    answers.push_back(Submit({Numbered(i % 2 ? OpKind::kAuthorize : OpKind::kSettle, i)}));
  }
  EXPECT_FALSE(Answered(first)) << "nothing is answered before its commit";
  db.Block(false);
  for (Answer& answer : answers) EXPECT_TRUE(answer.get().ok());
  ASSERT_EQ(db.batches.size(), 2U);
  EXPECT_EQ(db.batches[0].size(), 1U);
  std::vector<int64_t> order;
  for (const Op& op : db.batches[1]) order.push_back(op.amount);
  EXPECT_EQ(order, (std::vector<int64_t>{2, 4, 6, 8, 10, 1, 3, 5, 7, 9}));
}

TEST_F(GroupCommitTest, ABatchHasAtMost256Operations) {
  Start();
  db.Block(true);
  auto first = Submit({Numbered(OpKind::kAuthorize, 0)});
  db.WaitForBatches(1);
  auto large = Submit(std::vector<Op>(600, Numbered(OpKind::kSettle, 1)));
  db.Block(false);
  ASSERT_TRUE(large.get().ok());
  ASSERT_EQ(db.batches.size(), 4U);
  EXPECT_EQ(db.batches[1].size(), 256U);
  EXPECT_EQ(db.batches[3].size(), 600U - 512U);
}

TEST_F(GroupCommitTest, AFullQueueRefusesAuthorizesAtOnceButTakesSettles) {
  options.queue_limit = 10;
  Start();
  db.Block(true);
  auto first = Submit({Numbered(OpKind::kAuthorize, 0)});
  db.WaitForBatches(1);
  std::vector<Answer> waiting;
  for (int i = 0; i < 10; ++i) waiting.push_back(Submit({Numbered(OpKind::kAuthorize, i)}));
  auto refused = Submit({Numbered(OpKind::kAuthorize, 1)});
  ASSERT_TRUE(Answered(refused));
  const auto result = refused.get();
  EXPECT_EQ(result.error().id, ErrorId::kServiceUnavailable);
  EXPECT_GT(result.error().retry_after_ms, 0);
  auto settle = Submit({Numbered(OpKind::kSettle, 1)});
  EXPECT_FALSE(Answered(settle));
  db.Block(false);
  EXPECT_TRUE(settle.get().ok());
  for (Answer& answer : waiting) EXPECT_TRUE(answer.get().ok());
}

TEST_F(GroupCommitTest, NoTwoBatchesShareAWorkspace) {
  Start(4);
  std::vector<Answer> answers;
  for (int i = 0; i < 2000; ++i) {
    answers.push_back(Submit({Numbered(OpKind::kSettle, i, "ws" + std::to_string(i % 7)),
                              Numbered(OpKind::kAuthorize, i, "ws" + std::to_string(i % 5))}));
  }
  for (Answer& answer : answers) EXPECT_TRUE(answer.get().ok());
  EXPECT_FALSE(db.overlapped);
}

TEST_F(GroupCommitTest, OtherWorkspacesDoNotWaitForABusyOne) {
  Start(2);
  db.Block(true);
  auto first = Submit({Numbered(OpKind::kSettle, 1, "a")});
  db.WaitForBatches(1);
  auto same = Submit({Numbered(OpKind::kSettle, 2, "a")});
  auto other = Submit({Numbered(OpKind::kSettle, 3, "b")});
  db.WaitForBatches(2);
  {
    const std::lock_guard lock(db.mutex);
    EXPECT_EQ(db.batches[1].size(), 1U);
    EXPECT_EQ(db.batches[1][0].workspace, "b");
  }
  db.Block(false);
  EXPECT_TRUE(same.get().ok());
}

TEST_F(GroupCommitTest, ConflictsAreRunAgainWithoutTheCallersNoticing) {
  db.errors = {ErrorKind::kRetry, ErrorKind::kRetry};
  Start();
  EXPECT_TRUE(Submit({Numbered(OpKind::kAuthorize, 1)}).get().ok());
  EXPECT_EQ(db.batches.size(), 3U);
  EXPECT_TRUE(engine->available());
}

TEST_F(GroupCommitTest, AnUnknownCommitIsRunAgainByItsIds) {
  db.errors = {ErrorKind::kCommitUnknown};
  Start();
  EXPECT_TRUE(Submit({Numbered(OpKind::kAuthorize, 1)}).get().ok());
  EXPECT_EQ(db.batches.size(), 2U);
  EXPECT_EQ(db.reconnects, 2);  // at the start, and now
}

TEST_F(GroupCommitTest, ADatabaseThatIsAwayFailsClosedAndComesBackByItself) {
  options.call_timeout_ms = 60;
  options.reconnect_ms = 1;
  db.errors = {ErrorKind::kConnection};
  db.reachable = false;
  Start();
  auto first = Submit({Numbered(OpKind::kAuthorize, 1)});
  EXPECT_EQ(first.get().error().id, ErrorId::kServiceUnavailable);
  auto second = Submit({Numbered(OpKind::kSettle, 1)});
  EXPECT_TRUE(Answered(second)) << "at once while it is known to be away";
  EXPECT_FALSE(engine->available());
  {
    const std::lock_guard lock(db.mutex);
    db.reachable = true;
  }
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (!engine->available() && std::chrono::steady_clock::now() < give_up)
    std::this_thread::yield();
  EXPECT_TRUE(Submit({Numbered(OpKind::kAuthorize, 1)}).get().ok());
}

TEST_F(GroupCommitTest, ADatabaseThatHangsFailsItsCallersInTime) {
  options.call_timeout_ms = 100;
  Start();
  db.Block(true);
  auto running = Submit({Numbered(OpKind::kAuthorize, 1)});
  db.WaitForBatches(1);
  auto waiting = Submit({Numbered(OpKind::kAuthorize, 2)});
  EXPECT_EQ(running.get().error().id, ErrorId::kServiceUnavailable);
  EXPECT_EQ(waiting.get().error().id, ErrorId::kServiceUnavailable);
  auto settle = Submit({Numbered(OpKind::kSettle, 3)});
  db.Block(false);
  EXPECT_TRUE(settle.get().ok());
  // A hold that nobody would use is not opened afterwards.
  for (const auto& batch : db.batches) {
    for (const Op& op : batch) EXPECT_NE(op.amount, 2);
  }
}

TEST_F(GroupCommitTest, OneBadOperationFailsAlone) {
  Start();
  db.Block(true);
  auto first = Submit({Numbered(OpKind::kSettle, 0)});
  db.WaitForBatches(1);
  auto good = Submit({Numbered(OpKind::kSettle, 1)});
  Op bad = Numbered(OpKind::kSettle, 2);
  bad.reason = "bad";
  auto poison = Submit({bad});
  auto after = Submit({Numbered(OpKind::kSettle, 3)});
  db.Block(false);
  EXPECT_TRUE(good.get().ok());
  EXPECT_TRUE(after.get().ok());
  EXPECT_EQ(poison.get().error().id, ErrorId::kServerError);
}

TEST_F(GroupCommitTest, AClockThatStepsBackStopsAuthorizesOnly) {
  ManualClock manual;
  std::vector<std::unique_ptr<BatchRunner>> runners;
  runners.push_back(std::make_unique<FakeRunner>(db));
  engine = std::make_unique<GroupCommit>(options, manual, std::move(runners));
  engine->Start();
  const int64_t before = engine->Now();
  EXPECT_TRUE(Submit({Numbered(OpKind::kAuthorize, 1)}).get().ok());
  manual.StepWall(-2'000'000);
  EXPECT_EQ(engine->Now(), before) << "the ledger's time does not run back";
  EXPECT_FALSE(Submit({Numbered(OpKind::kAuthorize, 1)}).get().ok());
  EXPECT_TRUE(Submit({Numbered(OpKind::kSettle, 1)}).get().ok());
  manual.StepWall(1'500'000);
  EXPECT_TRUE(Submit({Numbered(OpKind::kAuthorize, 1)}).get().ok());
}

TEST_F(GroupCommitTest, StoppingAnswersEveryone) {
  Start();
  db.Block(true);
  auto running = Submit({Numbered(OpKind::kAuthorize, 1)});
  db.WaitForBatches(1);
  auto waiting = Submit({Numbered(OpKind::kAuthorize, 2)});
  std::thread stopper([this] { engine->Stop(); });
  db.Block(false);
  stopper.join();
  EXPECT_TRUE(running.get().ok());
  (void)waiting.get();  // answered, one way or the other
  EXPECT_FALSE(Submit({Numbered(OpKind::kSettle, 1)}).get().ok());
}

}  // namespace
}  // namespace tollgate::billing
