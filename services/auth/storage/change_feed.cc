#include "services/auth/storage/change_feed.h"

#include <algorithm>

#include "common/observability/log.h"

namespace tollgate::auth {
namespace {

constexpr auto kPeriod = std::chrono::milliseconds(250);
// A little less than the promised second, so that a period that ends late does not miss it.
constexpr int64_t kPingUs = 900'000;
// Keys in one message: far below the 4 MiB that a message may have.
constexpr int kPage = 1000;
// Beyond this many changes a watcher forgets its cache instead of mending it.
constexpr int kMaxMissed = 10'000;

v1::WatchKeysResponse ChangesOf(std::vector<v1::Key> keys, int64_t version) {
  v1::WatchKeysResponse message;
  message.set_version(version);
  for (v1::Key& key : keys) *message.add_changes()->mutable_key() = std::move(key);
  return message;
}

}  // namespace

void ChangeFeed::Start() {
  thread_ = std::thread([this] {
    std::unique_lock lock(wake_mutex_);
    while (!stopping_) {
      nudged_ = false;
      lock.unlock();
      Step();
      lock.lock();
      wake_.wait_for(lock, kPeriod, [this] { return nudged_ || stopping_; });
    }
  });
}

void ChangeFeed::Stop() {
  {
    std::lock_guard lock(wake_mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void ChangeFeed::Nudge() {
  {
    std::lock_guard lock(wake_mutex_);
    nudged_ = true;
  }
  wake_.notify_all();
}

uint64_t ChangeFeed::Subscribe(int64_t after_version, Sink sink) {
  uint64_t id = 0;
  {
    std::lock_guard lock(mutex_);
    id = next_id_++;
    watchers_.push_back({.id = id, .after_version = after_version, .sink = std::move(sink)});
    watcher_count_ = static_cast<int>(watchers_.size());
  }
  Nudge();
  return id;
}

void ChangeFeed::Unsubscribe(uint64_t watcher) {
  std::lock_guard lock(mutex_);
  std::erase_if(watchers_, [&](const Watcher& entry) { return entry.id == watcher; });
  watcher_count_ = static_cast<int>(watchers_.size());
}

void ChangeFeed::Step() {
  const auto looked = Look();
  if (healthy_.exchange(looked.ok()) && !looked) {
    log::Warn("the key database does not answer", {{"error", looked.error().ToString()}});
  }
}

Result<void> ChangeFeed::Look() {
  auto version = store_.Version();
  if (!version) return Fail{version.error()};
  if (auto advanced = Advance(*version); !advanced) return advanced;
  if (auto greeted = Greet(); !greeted) return greeted;
  Ping();
  return {};
}

Result<void> ChangeFeed::Advance(int64_t version) {
  if (version_ < 0) version_ = version;
  if (version < version_) {
    // Restored from a backup: what watchers have may never have happened.
    version_ = version;
    v1::WatchKeysResponse message;
    message.set_version(version);
    message.set_reset(true);
    Broadcast(message);
  }
  while (version_ < version) {
    auto keys = store_.ChangedAfter(version_, kPage);
    if (!keys) return Fail{keys.error()};
    const bool last = static_cast<int>(keys->size()) < kPage;
    // Not every change is one of a key, and there may be newer ones than the version that was read.
    const int64_t newest = keys->empty() ? 0 : keys->back().version();
    version_ = last ? std::max(version, newest) : newest;
    Broadcast(ChangesOf(std::move(*keys), version_));
  }
  return {};
}

Result<void> ChangeFeed::Greet() {
  std::vector<std::pair<uint64_t, int64_t>> waiting;
  {
    std::lock_guard lock(mutex_);
    for (const Watcher& watcher : watchers_) {
      if (!watcher.greeted) waiting.emplace_back(watcher.id, watcher.after_version);
    }
  }
  for (const auto& [id, after_version] : waiting) {
    // Without the lock: this reads the database.
    auto missed = MissedBy(after_version);
    if (!missed) return Fail{missed.error()};
    std::lock_guard lock(mutex_);
    for (Watcher& watcher : watchers_) {
      if (watcher.id != id) continue;
      watcher.greeted = true;
      watcher.last_sent_us = clock_.MonotonicUs();
      for (const auto& message : *missed) watcher.sink(message);
    }
  }
  return {};
}

Result<ChangeFeed::Messages> ChangeFeed::MissedBy(int64_t after_version) {
  Messages messages;
  const auto add = [&](v1::WatchKeysResponse message) {
    messages.push_back(std::make_shared<const v1::WatchKeysResponse>(std::move(message)));
  };
  v1::WatchKeysResponse reset;
  reset.set_version(version_);
  reset.set_reset(true);
  if (after_version < 0 || after_version > version_) {
    add(std::move(reset));
    return messages;
  }
  if (after_version == 0) after_version = version_;
  int missed = 0;
  while (after_version < version_) {
    auto keys = store_.ChangedAfter(after_version, kPage);
    if (!keys) return Fail{keys.error()};
    missed += static_cast<int>(keys->size());
    if (missed > kMaxMissed) {
      messages.clear();
      add(std::move(reset));
      return messages;
    }
    if (keys->empty()) break;
    after_version = keys->back().version();
    // Never beyond what all watchers know: newer changes come to everybody in a moment.
    add(ChangesOf(std::move(*keys), std::min(after_version, version_)));
  }
  add(ChangesOf({}, version_));
  return messages;
}

void ChangeFeed::Broadcast(const v1::WatchKeysResponse& message) {
  const auto shared = std::make_shared<const v1::WatchKeysResponse>(message);
  std::lock_guard lock(mutex_);
  for (Watcher& watcher : watchers_) {
    if (!watcher.greeted) continue;
    watcher.last_sent_us = clock_.MonotonicUs();
    watcher.sink(shared);
  }
}

void ChangeFeed::Ping() {
  const int64_t now_us = clock_.MonotonicUs();
  const auto ping = std::make_shared<const v1::WatchKeysResponse>(ChangesOf({}, version_));
  std::lock_guard lock(mutex_);
  for (Watcher& watcher : watchers_) {
    if (!watcher.greeted || now_us - watcher.last_sent_us < kPingUs) continue;
    watcher.last_sent_us = now_us;
    watcher.sink(ping);
  }
}

}  // namespace tollgate::auth
