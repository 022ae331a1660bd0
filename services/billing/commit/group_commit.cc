#include "services/billing/commit/group_commit.h"

#include <algorithm>
#include <chrono>

namespace tollgate::billing {

struct GroupCommit::Call {
  std::vector<Op> ops;  // moved out as they enter a batch
  int64_t deadline_us = 0;
  std::mutex mutex;
  std::vector<Reply> replies;
  size_t left = 0;
  Done done;  // empty once answered
};

struct GroupCommit::Work {
  std::vector<Item> items;
  std::vector<Op> ops;
  std::vector<std::string> workspaces;  // marked busy for it
};

GroupCommit::GroupCommit(Options options, const Clock& clock,
                         std::vector<std::unique_ptr<BatchRunner>> runners,
                         EngineObserver* observer, std::unique_ptr<sql::LogSync> sync)
    : options_(options),
      clock_(clock),
      runners_(std::move(runners)),
      observer_(observer),
      sync_(std::move(sync)) {}

GroupCommit::~GroupCommit() { Stop(); }

void GroupCommit::Start() {
  const std::lock_guard lock(mutex_);
  running_ = true;
  available_since_us_ = clock_.MonotonicUs();
  for (size_t i = 0; i < runners_.size(); ++i) threads_.emplace_back([this, i] { WorkerMain(i); });
  threads_.emplace_back([this] { WatchdogMain(); });
  if (sync_) sync_thread_ = std::thread([this] { SyncMain(); });
}

void GroupCommit::Stop() {
  std::vector<Item> left;
  {
    const std::lock_guard lock(mutex_);
    if (!running_) return;
    running_ = false;
    stopping_ = true;
    left.insert(left.end(), urgent_.begin(), urgent_.end());
    left.insert(left.end(), normal_.begin(), normal_.end());
    urgent_.clear();
    normal_.clear();
  }
  wake_.notify_all();
  stop_wake_.notify_all();
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
  for (const Item& item : left) Finish(*item.call, Unavailable("billing: stopping"));
}

bool GroupCommit::available() const {
  const std::lock_guard lock(mutex_);
  return running_ && available_;
}

int64_t GroupCommit::available_since_us() const {
  const std::lock_guard lock(mutex_);
  return available_since_us_;
}

int64_t GroupCommit::Now() {
  const int64_t wall = clock_.WallUs();
  const std::lock_guard lock(mutex_);
  last_now_us_ = std::max(last_now_us_, wall);
  return last_now_us_;
}

void GroupCommit::Submit(std::vector<Op> ops, Done done) {
  if (ops.empty()) return done(std::vector<Reply>());
  auto call = std::make_shared<Call>();
  call->ops = std::move(ops);
  call->replies.resize(call->ops.size());
  call->left = call->ops.size();
  call->done = std::move(done);
  call->deadline_us = clock_.MonotonicUs() + options_.call_timeout_ms * 1000;
  const bool authorizes = std::any_of(call->ops.begin(), call->ops.end(),
                                      [](const Op& op) { return op.kind == OpKind::kAuthorize; });
  std::string refused;
  {
    const int64_t wall = clock_.WallUs();
    const std::lock_guard lock(mutex_);
    const size_t count = call->ops.size();
    if (!running_) {
      refused = "billing: not running";
    } else if (!available_) {
      refused = "billing: the database is away";
    } else if (authorizes && normal_.size() + urgent_.size() + count > options_.queue_limit) {
      refused = "billing: the queue is full";
    } else if (urgent_.size() + count > options_.urgent_limit) {
      refused = "billing: the queue is full";
    } else if (authorizes && wall < last_now_us_ - options_.clock_back_us) {
      refused = "billing: the clock has stepped back";
    } else {
      for (size_t i = 0; i < count; ++i) {
        auto& queue = call->ops[i].kind == OpKind::kAuthorize ? normal_ : urgent_;
        queue.push_back({call, i});
      }
      calls_.push_back(call);
    }
  }
  if (!refused.empty()) {
    if (observer_) observer_->OnRefused();
    return Finish(*call, Unavailable(std::move(refused)));
  }
  wake_.notify_one();
}

void GroupCommit::WorkerMain(size_t index) {
  // The first batch shall not wait for a connection (a slow name server can take ten seconds).
  (void)runners_[index]->Reconnect();
  while (true) {
    Work work;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return stopping_ || Pick(work); });
      if (stopping_ && work.items.empty()) return;
    }
    RunWork(index, work);
    bool more;
    {
      const std::lock_guard lock(mutex_);
      for (const std::string& workspace : work.workspaces) busy_.erase(workspace);
      more = !urgent_.empty() || !normal_.empty();
    }
    // What waited for these workspaces may go to any worker now.
    if (more && runners_.size() > 1) wake_.notify_all();
  }
}

bool GroupCommit::Pick(Work& work) {
  Take(urgent_, work);
  Take(normal_, work);
  if (runners_.size() > 1) {
    for (const Op& op : work.ops) {
      if (busy_.insert(op.workspace).second) work.workspaces.push_back(op.workspace);
    }
  }
  return !work.items.empty();
}

void GroupCommit::Take(std::deque<Item>& queue, Work& work) {
  std::deque<Item> stay;
  while (!queue.empty() && work.items.size() < options_.batch_limit) {
    Item item = std::move(queue.front());
    queue.pop_front();
    Op& op = item.call->ops[item.index];
    if (busy_.contains(op.workspace)) {
      stay.push_back(std::move(item));
    } else if (op.kind != OpKind::kAuthorize || Waits(*item.call)) {
      work.ops.push_back(std::move(op));
      work.items.push_back(std::move(item));
    }  // else: a hold that nobody would use
  }
  queue.insert(queue.begin(), std::make_move_iterator(stay.begin()),
               std::make_move_iterator(stay.end()));
}

bool GroupCommit::Waits(Call& call) {
  const std::lock_guard lock(call.mutex);
  return static_cast<bool>(call.done);
}

bool GroupCommit::AnyoneWaits(const Work& work) const {
  return std::any_of(work.items.begin(), work.items.end(),
                     [](const Item& item) { return Waits(*item.call); });
}

void GroupCommit::RunWork(size_t index, Work& work) {
  BatchRunner& runner = *runners_[index];
  for (int attempt = 0;; ++attempt) {
    const int64_t started = clock_.MonotonicUs();
    auto result = runner.Run(work.ops, Now());
    if (result.ok()) {
      SetAvailable(true);
      if (observer_) observer_->OnBatch(work.ops, *result, clock_.MonotonicUs() - started);
      return Complete(work, std::move(*result));
    }
    if (observer_) observer_->OnError(result.error());
    const sql::SqlError error = result.error();
    if (!error.retryable()) {
      if (work.ops.size() > 1) return RunOneByOne(index, work);
      return FailWork(work, sql::ToError(error));
    }
    if (error.kind == sql::ErrorKind::kRetry) {
      if (Stopping() || !AnyoneWaits(work)) return FailWork(work, sql::ToError(error));
      Pause(std::min(attempt, 20));
      continue;
    }
    // One lost connection is not yet a database that is away. A file whose disk is full opens well
    // and fails again: no tight loop.
    if (attempt > 0) {
      SetAvailable(false);
      Pause(options_.reconnect_ms);
    }
    while (!Stopping() && !runner.Reconnect().ok()) {
      SetAvailable(false);
      Pause(options_.reconnect_ms);
    }
    // Those who have had their error ask again, with the same ids.
    if (Stopping() || !AnyoneWaits(work)) {
      SetAvailable(true);
      return FailWork(work, sql::ToError(error));
    }
  }
}

bool GroupCommit::Stopping() const {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

void GroupCommit::RunOneByOne(size_t index, Work& work) {
  for (size_t i = 0; i < work.items.size(); ++i) {
    Work one;
    one.items.push_back(std::move(work.items[i]));
    one.ops.push_back(std::move(work.ops[i]));
    RunWork(index, one);
  }
}

void GroupCommit::Complete(Work& work, Applied applied) {
  if (!sync_) return Answer(work.items, applied.replies);
  // A hold promises nothing to anybody outside: losing one in a power cut loses the request with
  // it.
  std::vector<Item> now;
  std::vector<Reply> now_replies;
  bool wake = false;
  {
    const std::lock_guard lock(sync_mutex_);
    for (size_t i = 0; i < work.items.size(); ++i) {
      const bool hold = work.ops[i].kind == OpKind::kAuthorize;
      (hold ? now : unsynced_items_).push_back(std::move(work.items[i]));
      (hold ? now_replies : unsynced_replies_).push_back(std::move(applied.replies[i]));
      wake = wake || !hold;
    }
  }
  if (wake) sync_wake_.notify_one();
  Answer(now, now_replies);
}

void GroupCommit::SyncMain() {
  while (true) {
    std::vector<Item> items;
    std::vector<Reply> replies;
    {
      std::unique_lock lock(sync_mutex_);
      sync_wake_.wait(lock, [this] { return sync_stopping_ || !unsynced_items_.empty(); });
      if (unsynced_items_.empty()) return;
      items.swap(unsynced_items_);
      replies.swap(unsynced_replies_);
    }
    const int64_t started = clock_.MonotonicUs();
    sync_->Sync();
    if (observer_) observer_->OnSync(clock_.MonotonicUs() - started);
    Answer(items, replies);
  }
}

void GroupCommit::Answer(std::vector<Item>& items, std::vector<Reply>& replies) {
  for (size_t i = 0; i < items.size(); ++i) {
    Call& call = *items[i].call;
    std::vector<Reply> all;
    Done done;
    {
      const std::lock_guard lock(call.mutex);
      call.replies[items[i].index] = std::move(replies[i]);
      if (--call.left > 0 || !call.done) continue;
      all = std::move(call.replies);
      done = std::exchange(call.done, nullptr);
    }
    done(std::move(all));
  }
}

void GroupCommit::FailWork(Work& work, const Error& error) {
  for (const Item& item : work.items) Finish(*item.call, Fail{error});
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

void GroupCommit::WatchdogMain() {
  while (true) {
    std::vector<std::shared_ptr<Call>> late;
    size_t waiting;
    {
      std::unique_lock lock(mutex_);
      stop_wake_.wait_for(lock, std::chrono::milliseconds(50), [this] { return stopping_; });
      if (stopping_) return;
      const int64_t now = clock_.MonotonicUs();
      while (!calls_.empty()) {
        auto call = calls_.front().lock();
        if (call && call->deadline_us > now) break;
        if (call) late.push_back(std::move(call));
        calls_.pop_front();
      }
      waiting = urgent_.size() + normal_.size();
    }
    if (observer_) observer_->OnQueue(waiting);
    for (const auto& call : late)
      Finish(*call, Unavailable("billing: the database does not answer"));
  }
}

}  // namespace tollgate::billing
