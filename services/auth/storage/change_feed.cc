#include "services/auth/storage/change_feed.h"

#include <algorithm>

#include "common/observability/log.h"

namespace tollgate::auth {
namespace {

constexpr auto kPeriod = std::chrono::milliseconds(250);
// Slightly below the promised second: a Step that runs late must not miss it.
constexpr int64_t kPingUs = 900'000;
// Keys per message: far below the 4 MiB limit of a gRPC message.
constexpr int kPageSize = 1000;
// A watcher that missed more changes than this must drop its cache.
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
      woken_ = false;
      lock.unlock();
      Step();
      lock.lock();
      wake_.wait_for(lock, kPeriod, [this] { return woken_ || stopping_; });
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

void ChangeFeed::Wake() {
  {
    std::lock_guard lock(wake_mutex_);
    woken_ = true;
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
  Wake();
  return id;
}

void ChangeFeed::Unsubscribe(uint64_t watcher) {
  std::lock_guard lock(mutex_);
  std::erase_if(watchers_, [&](const Watcher& entry) { return entry.id == watcher; });
  watcher_count_ = static_cast<int>(watchers_.size());
}

void ChangeFeed::Step() {
  const auto polled = Poll();
  if (healthy_.exchange(polled.ok()) && !polled) {
    log::Warn("key database unreachable", {{"error", polled.error().ToString()}});
  }
}

Result<void> ChangeFeed::Poll() {
  auto version = store_.Version();
  if (!version) return Fail{version.error()};
  if (auto sent = BroadcastUpTo(*version); !sent) return sent;
  if (auto caught_up = CatchUpNewWatchers(); !caught_up) return caught_up;
  Ping();
  return {};
}

Result<void> ChangeFeed::BroadcastUpTo(int64_t version) {
  if (version_ < 0) version_ = version;
  if (version < version_) {
    // The database was restored from a backup: watchers may have changes that are not in it.
    version_ = version;
    v1::WatchKeysResponse message;
    message.set_version(version);
    message.set_reset(true);
    Broadcast(message);
  }
  while (version_ < version) {
    auto keys = store_.ChangedAfter(version_, kPageSize);
    if (!keys) return Fail{keys.error()};
    const bool last = static_cast<int>(keys->size()) < kPageSize;
    // Some changes affect no key, and some may be newer than the version that was read.
    const int64_t newest = keys->empty() ? 0 : keys->back().version();
    version_ = last ? std::max(version, newest) : newest;
    Broadcast(ChangesOf(std::move(*keys), version_));
  }
  return {};
}

Result<void> ChangeFeed::CatchUpNewWatchers() {
  std::vector<std::pair<uint64_t, int64_t>> waiting;
  {
    std::lock_guard lock(mutex_);
    for (const Watcher& watcher : watchers_) {
      if (!watcher.caught_up) waiting.emplace_back(watcher.id, watcher.after_version);
    }
  }
  for (const auto& [id, after_version] : waiting) {
    // Without the lock: this blocks on the database.
    auto missed = MessagesAfter(after_version);
    if (!missed) return Fail{missed.error()};
    std::lock_guard lock(mutex_);
    for (Watcher& watcher : watchers_) {
      if (watcher.id != id) continue;
      watcher.caught_up = true;
      watcher.last_sent_us = clock_.MonotonicUs();
      for (const auto& message : *missed) watcher.sink(message);
    }
  }
  return {};
}

Result<ChangeFeed::Messages> ChangeFeed::MessagesAfter(int64_t after_version) {
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
    auto keys = store_.ChangedAfter(after_version, kPageSize);
    if (!keys) return Fail{keys.error()};
    missed += static_cast<int>(keys->size());
    if (missed > kMaxMissed) {
      messages.clear();
      add(std::move(reset));
      return messages;
    }
    if (keys->empty()) break;
    after_version = keys->back().version();
    // Not above version_: newer changes follow with the next broadcast.
    add(ChangesOf(std::move(*keys), std::min(after_version, version_)));
  }
  add(ChangesOf({}, version_));
  return messages;
}

void ChangeFeed::Broadcast(const v1::WatchKeysResponse& message) {
  const auto shared = std::make_shared<const v1::WatchKeysResponse>(message);
  std::lock_guard lock(mutex_);
  for (Watcher& watcher : watchers_) {
    if (!watcher.caught_up) continue;
    watcher.last_sent_us = clock_.MonotonicUs();
    watcher.sink(shared);
  }
}

void ChangeFeed::Ping() {
  const int64_t now_us = clock_.MonotonicUs();
  const auto ping = std::make_shared<const v1::WatchKeysResponse>(ChangesOf({}, version_));
  std::lock_guard lock(mutex_);
  for (Watcher& watcher : watchers_) {
    if (!watcher.caught_up || now_us - watcher.last_sent_us < kPingUs) continue;
    watcher.last_sent_us = now_us;
    watcher.sink(ping);
  }
}

}  // namespace tollgate::auth
