// Requests that wait until an engine of their pool has room, in a fair order. First, priority
// classes take turns by weight. Within a class, workspaces take turns by what they were given, so
// that a workspace that sends many requests delays only its own (ADR 0028, ADR 0032).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "services/inference_router/balancer/select_engine.h"

namespace tollgate::inference_router {

// While all classes have waiting requests, each class is given four times the tokens of the next.
enum class PriorityClass : uint8_t { kHigh, kNormal, kLow };

struct WaitQueueLimits {
  // Limits on the waiting requests and on the bytes of their bodies. When a limit is reached, the
  // newest request is refused of the workspace with most waiting requests, in the class with most
  // in relation to its weight.
  size_t max_requests = 1024;
  int64_t max_bytes = 256 << 20;
};

// Thread-safe; one for each pool, shared by all loops.
class WaitQueue {
 public:
  // One request. Its owner keeps it until it is granted or withdrawn.
  struct Request {
    std::string workspace;
    PriorityClass priority = PriorityClass::kNormal;
    // The request's cost for an engine, in tokens; at least 1.
    int64_t cost = 1;
    int64_t bytes = 0;
    // Must live as long as the request.
    const std::vector<EnginePointer>* engines = nullptr;
    EngineNeed need;
    // Called once, on any thread, when the request is granted or refused. Must not call the queue.
    std::function<void()> wake;

   private:
    friend class WaitQueue;
    enum class State : uint8_t { kNew, kWaiting, kGranted, kRefused } state_ = State::kNew;
    Selection granted_;
    int64_t tag_ = 0;  // its turn, in tokens
    uint64_t number_ = 0;
  };
  enum class Entered : uint8_t { kGranted, kWaiting, kFull, kDown };
  struct Answer {
    Entered entered = Entered::kWaiting;
    // kGranted: the result of SelectEngine. kFull, kDown: when to retry.
    Selection selection;
  };

  explicit WaitQueue(WaitQueueLimits limits = {}) : limits_(limits) {}

  // Selects an engine unless other requests are waiting; otherwise the request waits. kDown: no
  // engine of the pool is available and no request is waiting. may_wait: false returns kFull
  // instead of waiting.
  Answer Enter(Request& request, bool may_wait, int64_t now_us, uint64_t rotation);
  // Grants waiting requests that have room. Call after each Leave of an engine, and from time to
  // time because engines also recover.
  void Grant(int64_t now_us);
  // Ends the wait. kGranted: with the engine, which the owner has to leave. kFull: the request was
  // refused to make room. kWaiting: the request was still waiting.
  Answer Withdraw(Request& request, int64_t now_us);

  // Estimated milliseconds until a new request would have its turn, from the recent rate of grants;
  // 1 s to 60 s.
  int64_t RetryAfterMs() const;
  size_t waiting() const { return waiting_.load(); }

 private:
  struct Order {
    bool operator()(const Request* a, const Request* b) const {
      return a->tag_ != b->tag_ ? a->tag_ < b->tag_ : a->number_ < b->number_;
    }
  };
  struct Workspace {
    int64_t next_tag = 0;  // tag of its next request
    std::set<Request*, Order> waiting;
  };
  struct Class {
    std::set<Request*, Order> order;
    std::unordered_map<std::string, Workspace> workspaces;  // workspaces with waiting requests
    int64_t now_tag = 0;                                    // tag of its last granted request
    int64_t tag = 0;                                        // its turn among the classes
  };
  static constexpr size_t kClasses = 3;

  // Requires the mutex.
  int64_t RetryMs() const;
  Class& ClassOf(const Request& request) { return classes_[static_cast<size_t>(request.priority)]; }
  Class& MostCrowded(PriorityClass coming);
  bool MakeRoom(Request& request, std::vector<std::function<void()>>& wakes);
  void Add(Request& request);
  void Remove(Request& request);
  void GrantAll(int64_t now_us, std::vector<std::function<void()>>& wakes);
  void OnGranted(Request& request, int64_t now_us);
  void Note(const std::string& workspace, int64_t now_us);
  // Whether the workspace has many waiting requests while others also use the pool.
  bool Floods(const Request& request, int64_t spare, int64_t now_us);

  const WaitQueueLimits limits_;
  std::atomic<size_t> waiting_{0};
  mutable std::mutex mutex_;
  std::array<Class, kClasses> classes_;  // by PriorityClass
  size_t size_ = 0;                      // waiting requests; same as waiting_
  int64_t bytes_ = 0;
  int64_t now_tag_ = 0;  // tag of the class that got the last place
  uint64_t last_number_ = 0;
  struct Caller {
    std::string workspace;
    int64_t us = INT64_MIN / 2;
  };
  Caller last_;              // the last caller
  Caller other_;             // the last caller from another workspace
  int64_t granted_us_ = 0;   // time of the last grant
  int64_t interval_us_ = 0;  // average time between grants while requests wait
};

}  // namespace tollgate::inference_router
