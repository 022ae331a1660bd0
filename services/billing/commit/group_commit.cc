#include "services/billing/commit/group_commit.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

namespace tollgate::billing {

namespace {
// A conflict goes away with a retry. If it does not, a workspace in the batch causes it.
constexpr int kConflictTries = 5;
constexpr int kUniqueTries = 2;
}  // namespace

GroupCommit::GroupCommit(Options options, const Clock& clock,
                         std::vector<std::unique_ptr<BatchRunner>> runners,
                         GroupCommitObserver* observer, std::unique_ptr<sql::LogSync> sync)
    : options_(options),
      clock_(clock),
      ledger_clock_(clock),
      runners_(std::move(runners)),
      observer_(observer),
      sync_(std::move(sync)) {}

GroupCommit::~GroupCommit() { Stop(); }

void GroupCommit::Start() {
  const std::lock_guard lock(mutex_);
  running_ = true;
  available_since_us_ = clock_.MonotonicUs();
  for (size_t i = 0; i < runners_.size(); ++i) {
    threads_.emplace_back([this, i] { WorkerMain(i); });
    pthread_setname_np(threads_.back().native_handle(), "ledger-commit");
  }
  threads_.emplace_back([this] { WatchdogMain(); });
  pthread_setname_np(threads_.back().native_handle(), "ledger-watch");
  if (node_answers_) {
    threads_.emplace_back([this] { NodesMain(); });
    pthread_setname_np(threads_.back().native_handle(), "ledger-nodes");
  }
  if (!sync_) return;
  sync_thread_ = std::thread([this] { SyncMain(); });
  pthread_setname_np(sync_thread_.native_handle(), "ledger-sync");
}

void GroupCommit::Stop() {
  std::vector<QueuedOperation> left;
  {
    const std::lock_guard lock(mutex_);
    if (!running_) return;
    running_ = false;
    stopping_ = true;
    left = queue_.Clear();
  }
  wake_.notify_all();
  stop_wake_.notify_all();
  aside_wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  if (sync_thread_.joinable()) {
    {
      const std::lock_guard lock(sync_mutex_);
      sync_stopping_ = true;
    }
    sync_wake_.notify_one();
    sync_thread_.join();
  }
  for (const QueuedOperation& queued : left) Finish(*queued.call, Unavailable("billing: stopping"));
}

void GroupCommit::SetOneShard(bool one_shard) {
  const std::lock_guard lock(mutex_);
  queue_.SetOneShard(one_shard);
}

bool GroupCommit::available() const {
  const std::lock_guard lock(mutex_);
  return running_ && available_;
}

int64_t GroupCommit::available_since_us() const {
  const std::lock_guard lock(mutex_);
  return available_since_us_;
}

void GroupCommit::Submit(std::vector<Operation> operations, Done done) {
  if (operations.empty()) return done(std::vector<Reply>());
  auto call = std::make_shared<Call>();
  call->operations = std::move(operations);
  call->replies.resize(call->operations.size(), Refuse(Deny::kUnavailable));
  call->left = call->operations.size();
  call->done = std::move(done);
  call->since_us = clock_.MonotonicUs();
  call->deadline_us = call->since_us + options_.call_timeout_ms * 1000;
  const bool authorizes =
      std::any_of(call->operations.begin(), call->operations.end(), IsAuthorize);
  std::string refused;
  size_t full = 0;
  {
    const std::lock_guard lock(mutex_);
    const size_t count = call->operations.size();
    if (!running_) {
      refused = "billing: not running";
    } else if (!available_) {
      refused = "billing: the database is unreachable";
    } else if (authorizes && queue_.size() + count > options_.queue_limit) {
      refused = "billing: the queue is full";
    } else if (queue_.urgent() + count > options_.urgent_limit) {
      refused = "billing: the queue is full";
    } else {
      for (size_t i = 0; i < count; ++i) {
        if (queue_.Push({call, i})) continue;
        ++full;
      }
      calls_.push_back(call);
      if (count > 1 || !queue_.nodes().of_shard.empty()) young_.push_back(call);
    }
  }
  if (!refused.empty()) {
    if (observer_) observer_->OnRefused();
    return Finish(*call, Unavailable(std::move(refused)));
  }
  wake_.notify_one();
  if (full > 0) CountReplies(*call, full);
}

void GroupCommit::WorkerMain(size_t index) {
  // Connects before the first batch arrives: a slow name server can take ten seconds.
  (void)runners_[index]->Reconnect();
  while (true) {
    PendingBatch batch;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] {
        return stopping_ || queue_.Take(options_.batch_limit, clock_.MonotonicUs(), batch);
      });
      if (stopping_ && batch.sources.empty()) return;
    }
    Execute(index, batch);
    bool more;
    {
      const std::lock_guard lock(mutex_);
      queue_.Release(batch);
      more = queue_.size() > 0;
    }
    // Other workers may take operations that waited for these workspaces.
    if (more && runners_.size() > 1) wake_.notify_all();
  }
}

bool GroupCommit::HasPendingCall(const PendingBatch& batch) {
  return std::any_of(batch.sources.begin(), batch.sources.end(),
                     [](const QueuedOperation& queued) { return queued.call->IsPending(); });
}

void GroupCommit::Execute(size_t index, PendingBatch& batch) {
  BatchRunner& runner = *runners_[index];
  bool locked_once = false;
  for (int attempt = 0;; ++attempt) {
    const int64_t started = clock_.MonotonicUs();
    auto result = runner.Run(batch.operations, NowUs());
    if (result.ok()) {
      SetAvailable(true);
      if (observer_) observer_->OnBatch(batch.operations, *result, clock_.MonotonicUs() - started);
      return Complete(batch, std::move(*result));
    }
    if (observer_) observer_->OnError(result.error());
    const sql::SqlError error = result.error();
    using Kind = sql::ErrorKind;
    // Also if all calls have timed out, so that later calls do not have to.
    if (IsOfANode(index, error)) return SetNodeAside(index, batch, error);
    if (error.kind == Kind::kConnection || error.kind == Kind::kCommitUnknown) {
      if (!Recover(index, batch, error, attempt)) return;
      continue;
    }
    // Callers retry calls that have timed out, with the same ids.
    if (Stopping() || !HasPendingCall(batch)) return FailBatch(batch, sql::ToError(error));
    if (error.kind == Kind::kLocked) {
      std::set<std::string> locked = LockedOf(index, batch);
      // The lock is not on a wallet, or is already released: perhaps a table was locked briefly.
      if (locked.empty() && !std::exchange(locked_once, true)) continue;
      return SetLockedAside(index, batch, error, std::move(locked));
    }
    const int tries = error.kind == Kind::kRetry    ? kConflictTries
                      : error.kind == Kind::kUnique ? kUniqueTries
                                                    : 0;
    if (attempt >= tries) return Divide(index, batch, error);
    Pause(attempt);
  }
}

bool GroupCommit::Recover(size_t index, PendingBatch& batch, const sql::SqlError& error,
                          int attempt) {
  // One lost connection does not mean that the database is unreachable. On a full disk SQLite
  // reconnects and then fails again: the pause avoids a busy loop.
  if (attempt > 0) {
    SetAvailable(false);
    Pause(options_.reconnect_ms);
  }
  while (!Stopping() && !runners_[index]->Reconnect().ok()) {
    SetAvailable(false);
    Pause(options_.reconnect_ms);
  }
  if (!Stopping() && HasPendingCall(batch)) return true;
  SetAvailable(true);
  FailBatch(batch, sql::ToError(error));
  return false;
}

bool GroupCommit::Stopping() const {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

void GroupCommit::Complete(PendingBatch& batch, Applied applied) {
  {
    const std::lock_guard lock(mutex_);
    if (queue_.isolated() > 0) {
      for (const std::string& workspace : batch.workspaces) {
        queue_.Heal(workspace, clock_.MonotonicUs());
      }
    }
  }
  if (!sync_) return SetReplies(batch.sources, applied.replies);
  // Opening a hold needs no durability: a power failure that loses it also ends its request.
  std::vector<QueuedOperation> holds;
  std::vector<Reply> hold_replies;
  bool wake = false;
  {
    const std::lock_guard lock(sync_mutex_);
    for (size_t i = 0; i < batch.sources.size(); ++i) {
      const bool hold = IsAuthorize(batch.operations[i]);
      (hold ? holds : unsynced_operations_).push_back(std::move(batch.sources[i]));
      (hold ? hold_replies : unsynced_replies_).push_back(std::move(applied.replies[i]));
      wake = wake || !hold;
    }
  }
  if (wake) sync_wake_.notify_one();
  SetReplies(holds, hold_replies);
}

void GroupCommit::SyncMain() {
  while (true) {
    std::vector<QueuedOperation> operations;
    std::vector<Reply> replies;
    {
      std::unique_lock lock(sync_mutex_);
      sync_wake_.wait(lock, [this] { return sync_stopping_ || !unsynced_operations_.empty(); });
      if (unsynced_operations_.empty()) return;
      operations.swap(unsynced_operations_);
      replies.swap(unsynced_replies_);
    }
    const int64_t started = clock_.MonotonicUs();
    sync_->Sync();
    if (observer_) observer_->OnSync(clock_.MonotonicUs() - started);
    SetReplies(operations, replies);
  }
}

void GroupCommit::SetReplies(std::vector<QueuedOperation>& operations,
                             std::vector<Reply>& replies) {
  for (size_t i = 0; i < operations.size(); ++i) {
    Call& call = *operations[i].call;
    {
      const std::lock_guard lock(call.mutex);
      call.replies[operations[i].index] = std::move(replies[i]);
    }
    CountReplies(call, 1);
  }
}

void GroupCommit::CountReplies(Call& call, size_t count) {
  std::vector<Reply> all;
  Done done;
  {
    const std::lock_guard lock(call.mutex);
    call.left -= count;
    if (call.left > 0 || !call.done) return;
    all = std::move(call.replies);
    done = std::exchange(call.done, nullptr);
  }
  done(std::move(all));
}

void GroupCommit::FailBatch(PendingBatch& batch, const Error& error) {
  for (const QueuedOperation& queued : batch.sources) Finish(*queued.call, Fail{error});
}

void GroupCommit::Finish(Call& call, Result<std::vector<Reply>> result) {
  Done done;
  {
    const std::lock_guard lock(call.mutex);
    done = std::exchange(call.done, nullptr);
  }
  if (done) done(std::move(result));
}

void GroupCommit::SetAvailable(bool available) {
  const std::lock_guard lock(mutex_);
  if (available == available_) return;
  available_ = available;
  if (available) available_since_us_ = clock_.MonotonicUs();
}

void GroupCommit::Pause(int64_t ms) {
  std::unique_lock lock(mutex_);
  stop_wake_.wait_for(lock, std::chrono::milliseconds(ms), [this] { return stopping_; });
}

void GroupCommit::AnswerSlow(int64_t now_us, bool distributed) {
  std::erase_if(slow_, [&](const std::weak_ptr<Call>& weak) {
    const auto call = weak.lock();
    if (!call) return true;
    std::vector<Reply> replies;
    Done done;
    {
      const std::lock_guard lock(call->mutex);
      if (!call->done) return true;
      const bool in_part = call->left < call->replies.size();
      const int64_t limit_ms = in_part ? options_.part_timeout_ms : options_.node_timeout_ms;
      if (!(in_part || distributed) || now_us - call->since_us < limit_ms * 1000) return false;
      replies = call->replies;
      done = std::exchange(call->done, nullptr);
    }
    done(std::move(replies));
    return true;
  });
}

void GroupCommit::WatchdogMain() {
  while (true) {
    std::vector<std::shared_ptr<Call>> late;
    size_t waiting;
    size_t failing;
    bool distributed;
    int64_t now;
    {
      std::unique_lock lock(mutex_);
      stop_wake_.wait_for(lock, std::chrono::milliseconds(50), [this] { return stopping_; });
      if (stopping_) return;
      now = clock_.MonotonicUs();
      distributed = available_ && !queue_.nodes().of_shard.empty();
      const int64_t slow_us = now - options_.part_timeout_ms * 1000;
      while (!young_.empty()) {
        const auto call = young_.front().lock();
        if (call && call->since_us > slow_us) break;
        if (call) slow_.push_back(young_.front());
        young_.pop_front();
      }
      while (!calls_.empty()) {
        auto call = calls_.front().lock();
        if (call && call->deadline_us > now) break;
        if (call) late.push_back(std::move(call));
        calls_.pop_front();
      }
      waiting = queue_.size();
      failing = queue_.Failing(now);
      // A batch may retry an isolated workspace now.
      if (queue_.isolated() > 0 && waiting > 0) wake_.notify_one();
    }
    if (observer_) {
      observer_->OnQueue(waiting);
      observer_->OnFailing(failing);
    }
    AnswerSlow(now, distributed);
    for (const auto& call : late) {
      Finish(*call, Unavailable("billing: the database did not respond in time"));
    }
  }
}

}  // namespace tollgate::billing
