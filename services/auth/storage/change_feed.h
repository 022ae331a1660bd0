// The stream of key changes that gateways watch. Every replica reads the database's version four
// times a second, so a change made at one is known at all within that time; a ping each second
// tells a watcher that what it has cached still stands. While the database does not answer there
// are no pings: this replica does not know then. spec: decisions.md 14, reliability.md section 3
// "Push".
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "common/base/clock.h"
#include "services/auth/storage/auth_store.h"

namespace tollgate::auth {

class ChangeFeed {
 public:
  // Gets each message, in order, on the feed's thread. Must not block nor call the feed.
  using Sink = std::function<void(std::shared_ptr<const v1::WatchKeysResponse>)>;

  ChangeFeed(AuthStore& store, const Clock& clock) : store_(store), clock_(clock) {}
  ~ChangeFeed() { Stop(); }

  // The thread that runs Step every 250 ms. Without it a test runs Step itself.
  void Start();
  void Stop();
  // There is a change: look at once. From any thread.
  void Nudge();

  // The watcher's first message says what it missed: nothing, some changes, or too much (reset).
  uint64_t Subscribe(int64_t after_version, Sink sink);
  // After it returns the sink is not called any more.
  void Unsubscribe(uint64_t watcher);

  // Looks for changes and tells the watchers. One thread at a time.
  void Step();
  // Whether the last look succeeded.
  bool healthy() const { return healthy_; }
  int watchers() const { return watcher_count_; }

 private:
  struct Watcher {
    uint64_t id = 0;
    int64_t after_version = 0;
    Sink sink;
    bool greeted = false;
    int64_t last_sent_us = 0;
  };
  using Messages = std::vector<std::shared_ptr<const v1::WatchKeysResponse>>;

  Result<void> Look();
  Result<void> Advance(int64_t version);
  Result<void> Greet();
  Result<Messages> MissedBy(int64_t after_version);
  void Broadcast(const v1::WatchKeysResponse& message);
  void Ping();

  AuthStore& store_;
  const Clock& clock_;
  // Of the feed's thread: the version that watchers know.
  int64_t version_ = -1;

  std::mutex mutex_;
  std::list<Watcher> watchers_;
  uint64_t next_id_ = 1;

  std::mutex wake_mutex_;
  std::condition_variable wake_;
  bool nudged_ = false;
  bool stopping_ = false;
  std::thread thread_;
  std::atomic<bool> healthy_{false};
  std::atomic<int> watcher_count_{0};
};

}  // namespace tollgate::auth
