#include "services/inference_router/balancer/wait_queue.h"

#include <algorithm>
#include <utility>

namespace tollgate::inference_router {
namespace {

constexpr int64_t kMinRetryMs = 1'000;
constexpr int64_t kMaxRetryMs = 60'000;
// Of which the average of grants consists: a new interval counts for an eighth.
constexpr int64_t kIntervals = 8;

void WakeAll(const std::vector<std::function<void()>>& wakes) {
  for (const auto& wake : wakes) wake();
}

}  // namespace

WaitQueue::Answer WaitQueue::Enter(Request& request, bool may_wait, int64_t now_us,
                                   uint64_t rotation) {
  Answer answer;
  if (waiting_.load() == 0) {
    answer.selection = SelectEngine(*request.engines, {}, now_us, rotation, request.need);
    if (answer.selection.engine != nullptr) {
      answer.entered = Entered::kGranted;
      return answer;
    }
    if (answer.selection.no_engine == NoEngine::kDown) {
      answer.entered = Entered::kDown;
      return answer;
    }
  }
  std::vector<std::function<void()>> wakes;
  {
    std::lock_guard lock(mutex_);
    if (!may_wait || !MakeRoom(request, wakes)) {
      answer.entered = Entered::kFull;
    } else {
      Add(request);
      // An engine may have become free before this request was counted: its Grant saw nobody.
      std::atomic_thread_fence(std::memory_order_seq_cst);
      GrantAll(now_us, wakes);
    }
  }
  WakeAll(wakes);
  if (answer.entered == Entered::kFull) {
    answer.selection.no_engine = NoEngine::kSaturated;
    answer.selection.retry_after_ms = RetryAfterMs();
  }
  return answer;
}

void WaitQueue::Grant(int64_t now_us) {
  std::atomic_thread_fence(std::memory_order_seq_cst);  // after Leave, see Enter
  if (waiting_.load() == 0) return;
  std::vector<std::function<void()>> wakes;
  {
    std::lock_guard lock(mutex_);
    GrantAll(now_us, wakes);
  }
  WakeAll(wakes);
}

WaitQueue::Answer WaitQueue::Withdraw(Request& request, int64_t now_us) {
  Answer answer;
  std::lock_guard lock(mutex_);
  switch (request.state_) {
    case Request::State::kGranted:
      answer.entered = Entered::kGranted;
      answer.selection = std::move(request.granted_);
      break;
    case Request::State::kRefused:
      answer.entered = Entered::kFull;
      break;
    case Request::State::kWaiting:
      Remove(request);
      break;
    case Request::State::kNew:
      break;
  }
  request.state_ = Request::State::kNew;
  if (answer.entered != Entered::kGranted) {
    const bool up = std::any_of(request.engines->begin(), request.engines->end(),
                                [&](const auto& engine) { return engine->Available(now_us); });
    answer.selection.no_engine = up ? NoEngine::kSaturated : NoEngine::kDown;
    answer.selection.retry_after_ms = RetryMs();
  }
  return answer;
}

int64_t WaitQueue::RetryAfterMs() const {
  std::lock_guard lock(mutex_);
  return RetryMs();
}

int64_t WaitQueue::RetryMs() const {
  const auto waiting = static_cast<int64_t>(order_.size()) + 1;
  return std::clamp(waiting * interval_us_ / 1000, kMinRetryMs, kMaxRetryMs);
}

// The newest of the workspace with most requests goes, so that a flood refuses its own.
bool WaitQueue::MakeRoom(Request& request, std::vector<std::function<void()>>& wakes) {
  while (order_.size() >= limits_.max_requests || bytes_ + request.bytes > limits_.max_bytes) {
    Workspace* most = nullptr;
    for (auto& [name, workspace] : workspaces_) {
      if (most == nullptr || workspace.waiting.size() > most->waiting.size()) most = &workspace;
    }
    if (most == nullptr) return false;  // it is too large by itself
    const auto own = workspaces_.find(request.workspace);
    const size_t own_waiting = own == workspaces_.end() ? 0 : own->second.waiting.size();
    if (own_waiting + 1 >= most->waiting.size()) return false;
    Request& newest = **most->waiting.rbegin();
    Remove(newest);
    newest.state_ = Request::State::kRefused;
    wakes.push_back(std::move(newest.wake));
  }
  return true;
}

// Start-time fair queueing: a workspace's request has its turn when what the workspace was given
// before is matched by what the others were.
void WaitQueue::Add(Request& request) {
  Workspace& workspace = workspaces_[request.workspace];
  request.tag_ = std::max(now_tag_, workspace.next_tag);
  workspace.next_tag = request.tag_ + std::max<int64_t>(request.cost, 1);
  request.number_ = ++last_number_;
  request.state_ = Request::State::kWaiting;
  workspace.waiting.insert(&request);
  order_.insert(&request);
  bytes_ += request.bytes;
  if (order_.size() == 1) granted_us_ = 0;  // the time without a queue is no interval
  waiting_.store(order_.size());
}

void WaitQueue::Remove(Request& request) {
  const auto workspace = workspaces_.find(request.workspace);
  workspace->second.waiting.erase(&request);
  if (workspace->second.waiting.empty()) workspaces_.erase(workspace);
  order_.erase(&request);
  bytes_ -= request.bytes;
  waiting_.store(order_.size());
}

void WaitQueue::GrantAll(int64_t now_us, std::vector<std::function<void()>>& wakes) {
  // All have the engines of one pool, but for those from before a change of the catalog.
  constexpr int kMostPassedOver = 8;
  auto at = order_.begin();
  for (int passed_over = 0; at != order_.end() && passed_over < kMostPassedOver;) {
    Request& next = **at;
    Selection selection = SelectEngine(*next.engines, {}, now_us, last_number_, next.need);
    ++at;
    if (selection.engine == nullptr) {
      ++passed_over;
      continue;
    }
    next.granted_ = std::move(selection);
    now_tag_ = next.tag_;
    Remove(next);
    next.state_ = Request::State::kGranted;
    wakes.push_back(std::move(next.wake));
    if (granted_us_ > 0) interval_us_ += (now_us - granted_us_ - interval_us_) / kIntervals;
    granted_us_ = now_us;
  }
}

}  // namespace tollgate::inference_router
