// Requests that wait until an engine of their pool has room, in a fair order: first classes of
// priority take turns by their weights, then within a class workspaces by what they have been
// given, so that one that sends many requests delays its own (ADR 0028, ADR 0032).
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

// Of each, while requests of all wait, the tokens that are given are four times those of the next.
enum class PriorityClass : uint8_t { kHigh, kNormal, kLow };

struct WaitQueueLimits {
  // Requests that wait at a time, and the bytes of their bodies. When one more comes, the newest of
  // the workspace that has most waiting is refused, in the class that has most by its weight.
  size_t max_requests = 1024;
  int64_t max_bytes = 256 << 20;
};

// Thread-safe; one for each pool, shared by all loops.
class WaitQueue {
 public:
  // One request; its owner keeps it until it is granted or has withdrawn.
  struct Request {
    std::string workspace;
    PriorityClass priority = PriorityClass::kNormal;
    // What it takes of an engine, in tokens; at least 1.
    int64_t cost = 1;
    int64_t bytes = 0;
    // Lives as long as the request.
    const std::vector<EnginePointer>* engines = nullptr;
    EngineNeed need;
    // Called once, on any thread, when it is granted or refused. Must not call the queue.
    std::function<void()> wake;

   private:
    friend class WaitQueue;
    enum class State : uint8_t { kNew, kWaiting, kGranted, kRefused } state_ = State::kNew;
    Selection granted_;
    int64_t tag_ = 0;  // when its turn is, in tokens
    uint64_t number_ = 0;
  };
  enum class Entered : uint8_t { kGranted, kWaiting, kFull, kDown };
  struct Answer {
    Entered entered = Entered::kWaiting;
    // kGranted: as of SelectEngine. kFull, kDown: when to try again.
    Selection selection;
  };

  explicit WaitQueue(WaitQueueLimits limits = {}) : limits_(limits) {}

  // Selects an engine, unless others wait for one; else the request waits. kDown: no engine of the
  // pool can be used, and nothing else waits for one. may_wait: false: kFull instead.
  Answer Enter(Request& request, bool may_wait, int64_t now_us, uint64_t rotation);
  // Grants what waits and has room. Called after each Leave of an engine, and now and then, since
  // engines also recover.
  void Grant(int64_t now_us);
  // Ends the wait. kGranted with the engine, which its owner has to leave; kFull: it was refused to
  // make room; kWaiting: it had waited until now.
  Answer Withdraw(Request& request, int64_t now_us);

  // Milliseconds until a request that comes now might have its turn, as engines have become free
  // lately; 1 s to 60 s.
  int64_t RetryAfterMs() const;
  size_t waiting() const { return waiting_.load(); }

 private:
  struct Order {
    bool operator()(const Request* a, const Request* b) const {
      return a->tag_ != b->tag_ ? a->tag_ < b->tag_ : a->number_ < b->number_;
    }
  };
  struct Workspace {
    int64_t next_tag = 0;  // of its next request
    std::set<Request*, Order> waiting;
  };
  struct Class {
    std::set<Request*, Order> order;
    std::unordered_map<std::string, Workspace> workspaces;  // with requests that wait
    int64_t now_tag = 0;                                    // of its request that was granted last
    int64_t tag = 0;                                        // when its turn is among the classes
  };
  static constexpr size_t kClasses = 3;

  // Under the mutex.
  int64_t RetryMs() const;
  Class& ClassOf(const Request& request) { return classes_[static_cast<size_t>(request.priority)]; }
  Class& MostCrowded(PriorityClass coming);
  bool MakeRoom(Request& request, std::vector<std::function<void()>>& wakes);
  void Add(Request& request);
  void Remove(Request& request);
  void GrantAll(int64_t now_us, std::vector<std::function<void()>>& wakes);
  void OnGranted(Request& request, int64_t now_us);
  void Note(const std::string& workspace, int64_t now_us);
  // The workspace has many waiting, and others ask for the pool, too.
  bool Floods(const Request& request, int64_t spare, int64_t now_us);

  const WaitQueueLimits limits_;
  std::atomic<size_t> waiting_{0};
  mutable std::mutex mutex_;
  std::array<Class, kClasses> classes_;  // by PriorityClass
  size_t size_ = 0;                      // requests that wait, as waiting_
  int64_t bytes_ = 0;
  int64_t now_tag_ = 0;  // of the class that was given a place last
  uint64_t last_number_ = 0;
  struct Caller {
    std::string workspace;
    int64_t us = INT64_MIN / 2;
  };
  Caller last_;              // who came last
  Caller other_;             // … and another one before
  int64_t granted_us_ = 0;   // when one was granted last
  int64_t interval_us_ = 0;  // between grants while some wait, an average
};

}  // namespace tollgate::inference_router
