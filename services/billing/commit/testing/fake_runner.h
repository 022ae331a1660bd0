// A database in memory for tests of the group commit: it blocks, fails and locks when a test says
// so.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "services/billing/commit/group_commit.h"
#include "services/billing/domain/testing/ledger_world.h"

namespace tollgate::billing {

// The state of a fake database, controlled by the test.
struct FakeDatabase {
  std::mutex mutex;
  std::condition_variable changed;
  bool blocked = false;
  std::vector<std::vector<Operation>> batches;  // in the order in which they ran
  std::deque<sql::ErrorKind> errors;            // of the next runs
  bool reachable = true;
  std::multiset<std::string> running;  // workspaces
  bool overlapped = false;
  std::atomic<int> reconnects = 0;
  std::map<std::string, sql::ErrorKind> bad;  // batches with these workspaces fail
  std::set<std::string> locked;               // locked by another transaction
  std::set<std::string> broken;               // wallet and entries contradict each other
  bool audit_log_locked = false;              // commands write to it
  // Distributed database: batches of these workspaces get no answer until the test releases them.
  std::set<std::string> hanging;

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

// Operations that carry a number for identification.
inline Authorize NewAuthorize(int64_t number, std::string workspace = "ws") {
  Authorize op;
  op.workspace = std::move(workspace);
  op.prompt_bound = number;
  return op;
}
inline Settle NewSettle(int64_t number, std::string workspace = "ws") {
  Settle op;
  op.workspace = std::move(workspace);
  op.sequence = number;
  return op;
}
inline AddCredit NewAddCredit(int64_t number) { return MakeAddCredit("command", number); }

inline int64_t NumberOf(const Operation& operation) {
  if (const auto* authorize = std::get_if<Authorize>(&operation)) return authorize->prompt_bound;
  if (const auto* settle = std::get_if<Settle>(&operation)) return settle->sequence;
  return std::get<AddCredit>(operation).amount_nano_usd;
}

class FakeRunner : public BatchRunner {
 public:
  explicit FakeRunner(FakeDatabase& database) : db_(database) {}
  sql::SqlResult<Applied> Run(std::span<const Operation> operations, int64_t now_us) override {
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
    const bool hangs = std::ranges::any_of(
        mine, [this](const std::string& one) { return db_.hanging.contains(one); });
    if (hangs) {
      db_.changed.wait_for(lock, std::chrono::milliseconds(200), [this] { return db_.blocked; });
      for (const std::string& workspace : mine) db_.running.erase(db_.running.find(workspace));
      return Fail{sql::SqlError{sql::ErrorKind::kConnection, "no answer", /*no_answer=*/true}};
    }
    for (const std::string& workspace : mine) db_.running.erase(db_.running.find(workspace));
    if (!db_.errors.empty()) {
      const sql::ErrorKind kind = db_.errors.front();
      db_.errors.pop_front();
      return Fail{sql::SqlError{kind, "fake"}};
    }
    for (const Operation& op : operations) {
      const Settle* settle = std::get_if<Settle>(&op);
      if (settle && settle->engine == "bad")
        return Fail{sql::SqlError{sql::ErrorKind::kOther, "bad"}};
    }
    if (std::ranges::any_of(operations, IsCommand) && db_.audit_log_locked) {
      return Fail{sql::SqlError{sql::ErrorKind::kLocked, "locked"}};
    }
    for (const std::string& workspace : mine) {
      if (db_.locked.contains(workspace)) {
        return Fail{sql::SqlError{sql::ErrorKind::kLocked, "locked"}};
      }
      if (const auto bad = db_.bad.find(workspace); bad != db_.bad.end()) {
        return Fail{sql::SqlError{bad->second, "bad workspace"}};
      }
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
  sql::SqlResult<void> Reconnect() override {
    ++db_.reconnects;
    const std::lock_guard lock(db_.mutex);
    if (!db_.reachable) return Fail{sql::SqlError{sql::ErrorKind::kConnection, "unreachable"}};
    return {};
  }
  sql::SqlResult<std::vector<std::string>> Locked(std::span<const Operation> operations) override {
    const std::lock_guard lock(db_.mutex);
    std::set<std::string> found;
    for (const Operation& op : operations) {
      if (db_.locked.contains(WorkspaceOf(op))) found.insert(WorkspaceOf(op));
    }
    return std::vector<std::string>(found.begin(), found.end());
  }
  sql::SqlResult<std::string> FreezeIfBroken(const std::string& workspace) override {
    const std::lock_guard lock(db_.mutex);
    return std::string(db_.broken.contains(workspace) ? "broken" : "");
  }

 private:
  FakeDatabase& db_;
};

// Events that the group commit reported.
class Events : public GroupCommitObserver {
 public:
  void OnIsolated(const std::string& workspace, const sql::SqlError& error) override {
    const std::lock_guard lock(mutex_);
    isolated_.push_back(workspace);
  }
  void OnFailing(size_t workspaces) override {
    const std::lock_guard lock(mutex_);
    failing_ = workspaces;
    told_.notify_all();
  }
  void OnBroken(const std::string& workspace, const std::string& what) override {
    const std::lock_guard lock(mutex_);
    broken_.push_back(workspace);
  }
  // Waits until this many workspaces fail. Returns false after a timeout.
  bool WaitForFailing(size_t workspaces) {
    std::unique_lock lock(mutex_);
    return told_.wait_for(lock, std::chrono::seconds(30), [&] { return failing_ == workspaces; });
  }
  std::vector<std::string> isolated() {
    const std::lock_guard lock(mutex_);
    return isolated_;
  }
  std::vector<std::string> broken() {
    const std::lock_guard lock(mutex_);
    return broken_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable told_;
  std::optional<size_t> failing_;
  std::vector<std::string> isolated_;
  std::vector<std::string> broken_;
};

using PendingReplies = std::future<Result<std::vector<Reply>>>;

// Test fixture: a group commit over a fake database.
class GroupCommitTest : public ::testing::Test {
 protected:
  // Long timeouts, so that calls do not end because the machine is busy.
  GroupCommitTest() {
    options.call_timeout_ms = options.part_timeout_ms = options.node_timeout_ms = 60'000;
  }
  void TearDown() override {
    db.Block(false);
    group_commit.reset();
  }
  void Start(int workers = 1, std::unique_ptr<sql::LogSync> sync = nullptr) {
    std::vector<std::unique_ptr<BatchRunner>> runners;
    for (int i = 0; i < workers; ++i) runners.push_back(std::make_unique<FakeRunner>(db));
    group_commit =
        std::make_unique<GroupCommit>(options, clock, std::move(runners), &events, std::move(sync));
    if (node_answers) group_commit->WatchNodes(node_answers);
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
  Events events;
  GroupCommit::Options options;
  std::function<bool(int32_t)> node_answers;
  SystemClock& clock = SystemClock::Get();
  std::unique_ptr<GroupCommit> group_commit;
};

}  // namespace tollgate::billing
