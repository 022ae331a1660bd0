#include "services/inference_router/balancer/wait_queue.h"

#include <algorithm>
#include <utility>

namespace tollgate::inference_router {
namespace {

constexpr int64_t kMinRetryMs = 1'000;
constexpr int64_t kMaxRetryMs = 60'000;
// The average interval between grants is a moving average: a new interval has a weight of 1/8.
constexpr int64_t kIntervals = 8;
// A workspace that floods the pool leaves one of this many places to the others…
constexpr int64_t kPlacesPerSpare = 16;
// … if another workspace has sent a request within this time.
constexpr int64_t kOthersUs = 60'000'000;

// By PriorityClass: how far a token moves the turn of a class, the inverse of its weight.
constexpr int64_t kTurnPerToken[] = {1, 4, 16};
// Limit on the requests of a class that are passed over in one pass through the queue.
constexpr int kMostPassedOver = 8;

struct Places {
  int64_t all = 0;
  int64_t free = 0;
};

Places CountPlaces(const std::vector<EnginePointer>& engines, int64_t now_us) {
  Places places;
  for (const EnginePointer& engine : engines) {
    const int64_t most = engine->engine().max_concurrency();
    if (!engine->Available(now_us) || engine->PausedUs(now_us) > 0) continue;
    places.all += most;
    places.free += std::max<int64_t>(most - engine->running(), 0);
  }
  return places;
}

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
    Note(request.workspace, now_us);
    if (!may_wait || !MakeRoom(request, wakes)) {
      answer.entered = Entered::kFull;
    } else {
      Add(request);
      // An engine may have become free before this request was counted, so that its Grant found
      // nobody.
      std::atomic_thread_fence(std::memory_order_seq_cst);
      GrantAll(now_us, wakes);
    }
  }
  WakeAll(wakes);
  if (answer.entered == Entered::kFull) {
    answer.selection.no_engine = may_wait ? NoEngine::kQueueFull : NoEngine::kSaturated;
    answer.selection.retry_after_ms = std::max(RetryAfterMs(), PauseMs(*request.engines, now_us));
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
    const bool full = answer.entered == Entered::kFull;
    answer.selection.no_engine = !up    ? NoEngine::kDown
                                 : full ? NoEngine::kQueueFull
                                        : NoEngine::kSaturated;
    answer.selection.retry_after_ms = std::max(RetryMs(), PauseMs(*request.engines, now_us));
  }
  return answer;
}

int64_t WaitQueue::RetryAfterMs() const {
  std::lock_guard lock(mutex_);
  return RetryMs();
}

int64_t WaitQueue::RetryMs() const {
  const auto waiting = static_cast<int64_t>(size_) + 1;
  return std::clamp(waiting * interval_us_ / 1000, kMinRetryMs, kMaxRetryMs);
}

// The class with most requests in relation to its weight, including the incoming one. So a flood of
// one class cannot push out other classes, and a lower class cannot keep a higher one out.
WaitQueue::Class& WaitQueue::MostCrowded(PriorityClass coming) {
  size_t most = static_cast<size_t>(coming);
  size_t most_turns = 0;
  for (size_t i = 0; i < kClasses; ++i) {
    const size_t waiting = classes_[i].order.size() + (i == static_cast<size_t>(coming) ? 1 : 0);
    const size_t turns = waiting * static_cast<size_t>(kTurnPerToken[i]);
    if (turns < most_turns) continue;  // on a tie, the lower class
    most = i;
    most_turns = turns;
  }
  return classes_[most];
}

// Refuses the newest request of the workspace with most requests, so that a flood hits only itself.
bool WaitQueue::MakeRoom(Request& request, std::vector<std::function<void()>>& wakes) {
  if (request.bytes > limits_.max_bytes) return false;
  while (size_ >= limits_.max_requests || bytes_ + request.bytes > limits_.max_bytes) {
    Class& crowded = MostCrowded(request.priority);
    Workspace* most = nullptr;
    for (auto& [name, workspace] : crowded.workspaces) {
      if (most == nullptr || workspace.waiting.size() > most->waiting.size()) most = &workspace;
    }
    if (most == nullptr) return false;  // the others are within their shares
    if (&crowded == &ClassOf(request)) {
      const auto own = crowded.workspaces.find(request.workspace);
      const size_t own_waiting = own == crowded.workspaces.end() ? 0 : own->second.waiting.size();
      if (own_waiting + 1 >= most->waiting.size()) return false;
    }
    Request& newest = **most->waiting.rbegin();
    Remove(newest);
    newest.state_ = Request::State::kRefused;
    wakes.push_back(std::move(newest.wake));
  }
  return true;
}

// Start-time fair queueing: the turn of a workspace's request comes when the other workspaces of
// its class have been given as much as the workspace had before. Classes take turns in the same
// way.
void WaitQueue::Add(Request& request) {
  Class& own = ClassOf(request);
  if (own.order.empty()) own.tag = std::max(now_tag_, own.tag);
  Workspace& workspace = own.workspaces[request.workspace];
  request.tag_ = std::max(own.now_tag, workspace.next_tag);
  workspace.next_tag = request.tag_ + std::max<int64_t>(request.cost, 1);
  request.number_ = ++last_number_;
  request.state_ = Request::State::kWaiting;
  workspace.waiting.insert(&request);
  own.order.insert(&request);
  bytes_ += request.bytes;
  if (++size_ == 1) granted_us_ = 0;  // time without a queue does not count as an interval
  waiting_.store(size_);
}

void WaitQueue::Remove(Request& request) {
  Class& own = ClassOf(request);
  const auto workspace = own.workspaces.find(request.workspace);
  workspace->second.waiting.erase(&request);
  if (workspace->second.waiting.empty()) own.workspaces.erase(workspace);
  own.order.erase(&request);
  bytes_ -= request.bytes;
  waiting_.store(--size_);
}

void WaitQueue::Note(const std::string& workspace, int64_t now_us) {
  if (last_.workspace != workspace) {
    std::swap(last_, other_);
    last_.workspace = workspace;
  }
  last_.us = now_us;
}

bool WaitQueue::Floods(const Request& request, int64_t spare, int64_t now_us) {
  const Class& own = ClassOf(request);
  const auto workspace = own.workspaces.find(request.workspace);
  if (static_cast<int64_t>(workspace->second.waiting.size()) <= spare) return false;
  const Caller& other = last_.workspace == request.workspace ? other_ : last_;
  return now_us - other.us < kOthersUs;
}

void WaitQueue::OnGranted(Request& request, int64_t now_us) {
  Class& own = ClassOf(request);
  own.now_tag = request.tag_;
  now_tag_ = own.tag;
  own.tag +=
      std::max<int64_t>(request.cost, 1) * kTurnPerToken[static_cast<size_t>(request.priority)];
  Remove(request);
  request.state_ = Request::State::kGranted;
  if (granted_us_ > 0) interval_us_ += (now_us - granted_us_ - interval_us_) / kIntervals;
  granted_us_ = now_us;
}

// Without spare places each request of the other workspaces would wait for the next answer to end,
// behind everything that came before.
void WaitQueue::GrantAll(int64_t now_us, std::vector<std::function<void()>>& wakes) {
  if (size_ == 0) return;
  struct Look {
    std::set<Request*, Order>::iterator at;
    int passed_over = 0;
  };
  std::array<Look, kClasses> looks;
  for (size_t i = 0; i < kClasses; ++i) looks[i].at = classes_[i].order.begin();
  // The class with the next turn, among those with requests left in this pass.
  const auto next_class = [&] {
    size_t next = kClasses;
    for (size_t i = 0; i < kClasses; ++i) {
      const bool done =
          looks[i].at == classes_[i].order.end() || looks[i].passed_over == kMostPassedOver;
      if (!done && (next == kClasses || classes_[i].tag < classes_[next].tag)) next = i;
    }
    return next;
  };
  // All requests use engines of one pool, except those that came before a change of the catalog.
  Places places = CountPlaces(*(*looks[next_class()].at)->engines, now_us);
  const int64_t spare = places.all / kPlacesPerSpare;
  for (size_t of = next_class(); of < kClasses; of = next_class()) {
    Look& look = looks[of];
    Request& next = **look.at;
    ++look.at;
    Selection selection;
    if (spare == 0 || places.free > spare || !Floods(next, spare, now_us)) {
      selection = SelectEngine(*next.engines, {}, now_us, last_number_, next.need);
    }
    if (selection.engine == nullptr) {
      ++look.passed_over;
      continue;
    }
    --places.free;
    next.granted_ = std::move(selection);
    OnGranted(next, now_us);
    wakes.push_back(std::move(next.wake));
  }
}

}  // namespace tollgate::inference_router
