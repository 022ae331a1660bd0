#include "services/auth/storage/change_feed.h"

#include <algorithm>
#include <map>
#include <utility>

#include "common/base/time_units.h"
#include "common/base/try.h"
#include "common/observability/log.h"

namespace tollgate::auth {
namespace {

constexpr auto kPeriod = std::chrono::milliseconds(250);
// Slightly less than the promised second, so that a late Step does not miss it.
constexpr int64_t kPingUs = 900'000;
// Keys per message: below the 4 MiB limit of a gRPC message (rpc::kMaxMessageBytes) even if each
// has 200 allowed models of 200 bytes.
constexpr int kPageSize = 64;
// A watcher that missed more changes than this must drop its cache.
constexpr int kMaxMissed = 10'000;

v1::WatchKeysResponse ChangesOf(std::vector<v1::KeyChange> changes, int64_t version) {
  v1::WatchKeysResponse message;
  message.set_version(version);
  for (v1::KeyChange& change : changes) *message.add_changes() = std::move(change);
  return message;
}

}  // namespace

void ChangeFeed::Start() {
  thread_.Start("key-changes", kPeriod, [this] { Step(); });
}

uint64_t ChangeFeed::Subscribe(const v1::WatchKeysRequest& request, Sink sink) {
  uint64_t id = 0;
  {
    // A filter with tags of another pepper does not match the tags that this replica sends.
    const bool same_tags =
        request.filter_key_id() == 0 || request.filter_key_id() == FilterKeyId(store_.tag_key());
    std::lock_guard lock(mutex_);
    id = next_id_++;
    watchers_.push_back({.id = id,
                         .after_version = request.after_version(),
                         .takes_filter = request.takes_filter(),
                         .has_filter = request.has_filter() && same_tags,
                         .sink = std::move(sink)});
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
  // Serve from memory for a while, so that keys in use keep working (decision 58).
  const bool may_vouch =
      version_ >= 0 && (polled || clock_.MonotonicUs() - read_us_ <= options_.vouch_us);
  const bool vouches = !polled && may_vouch;
  store_.set_may_vouch(may_vouch);
  store_.set_vouching(vouches);
  if (vouches) Ping(/*vouched=*/true);
  TellHealth(polled, vouches);
  if (polled) read_us_ = clock_.MonotonicUs();
}

void ChangeFeed::TellHealth(const Result<void>& polled, bool vouches) {
  const int64_t unreachable_us = version_ >= 0 ? clock_.MonotonicUs() - read_us_ : 0;
  unreachable_metric_.Set(polled ? 0.0 : static_cast<double>(unreachable_us) / kSecondUs);
  const bool was_healthy = healthy_.exchange(polled.ok());
  const bool vouched = std::exchange(vouched_, vouches);
  if (polled && !was_healthy && read_us_ > 0) {
    log::Info("key database reached again", {{"unreachable_seconds", unreachable_us / kSecondUs}});
  }
  if (!polled && was_healthy) {
    log::Warn(
        "key database unreachable: keys in memory keep working, others get 503",
        {{"error", polled.error().ToString()}, {"vouch_seconds", options_.vouch_us / kSecondUs}});
  }
  if (!polled && vouched && !vouches) {
    log::Error(
        "key database unreachable for longer than auth.vouch_seconds: gateways refuse all keys "
        "with 503 once they have had no contact for 30 s",
        {{"error", polled.error().ToString()}});
  }
}

Result<void> ChangeFeed::Poll() {
  TRY(auto version, store_.Version());
  TRY(BroadcastUpTo(version));
  version_metric_.Set(static_cast<double>(version_));
  TRY(CatchUpNewWatchers());
  TRY(live_keys_.ReadOn());
  SendFilters();
  Ping(/*vouched=*/false);
  return {};
}

Result<void> ChangeFeed::BroadcastUpTo(int64_t version) {
  if (version_ < 0) {
    version_ = version;
    live_keys_.Restart();
  }
  if (version < version_) {
    // The database was restored from a backup: watchers may have changes that it does not contain.
    version_ = version;
    live_keys_.Restart();
    store_.memory().Clear();
    v1::WatchKeysResponse message;
    message.set_version(version);
    message.set_reset(true);
    Broadcast(message);
  }
  while (version_ < version) {
    TRY(auto changes, store_.ChangedAfter(version_, kPageSize));
    const bool last = static_cast<int>(changes.size()) < kPageSize;
    // Some changes affect no key, and some may be newer than the version that was read.
    const int64_t newest = changes.empty() ? 0 : changes.back().key().version();
    version_ = last ? std::max(version, newest) : newest;
    for (const v1::KeyChange& change : changes) {
      live_keys_.Add(change);
      store_.memory().Apply(change.key());
    }
    store_.memory().AdvanceTo(version_);
    Broadcast(ChangesOf(std::move(changes), version_));
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
    // Without the lock, because this blocks on the database.
    TRY(auto missed, MessagesAfter(after_version));
    std::lock_guard lock(mutex_);
    for (Watcher& watcher : watchers_) {
      if (watcher.id != id) continue;
      watcher.caught_up = true;
      watcher.last_sent_us = clock_.MonotonicUs();
      // The watcher keeps any complete filter that it has, unless it gets a reset.
      const bool keeps_filter = watcher.has_filter && !missed.front()->reset();
      watcher.filter_generation = keeps_filter ? std::max<int64_t>(1, live_keys_.generation()) : 0;
      watcher.filter_offset = SIZE_MAX;
      for (const auto& message : missed) watcher.sink(message);
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
    TRY(auto changes, store_.ChangedAfter(after_version, kPageSize));
    missed += static_cast<int>(changes.size());
    if (missed > kMaxMissed) {
      messages.clear();
      add(std::move(reset));
      return messages;
    }
    if (changes.empty()) break;
    after_version = changes.back().key().version();
    // At most version_: newer changes follow with the next broadcast.
    add(ChangesOf(std::move(changes), std::min(after_version, version_)));
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
    if (message.reset()) watcher.filter_generation = 0;
    watcher.sink(shared);
  }
}

std::shared_ptr<const v1::WatchKeysResponse> ChangeFeed::PieceAt(size_t offset) const {
  const KeyFilter& filter = *live_keys_.filter();
  auto message = std::make_shared<v1::WatchKeysResponse>();
  message->set_version(version_);
  v1::KeyFilterPiece& piece = *message->mutable_filter_piece();
  piece.set_seed(filter.shape().seed);
  piece.set_bytes(filter.shape().bytes);
  piece.set_hashes(static_cast<uint32_t>(filter.shape().hashes));
  piece.set_offset(offset);
  piece.set_data(filter.Read(offset, options_.piece_bytes));
  piece.set_last(offset + piece.data().size() >= filter.shape().bytes);
  piece.set_tag_key(store_.tag_key());
  piece.set_has_untagged(live_keys_.has_untagged());
  return message;
}

void ChangeFeed::SendFilters() {
  if (!live_keys_.filter()) return;
  const size_t bytes = live_keys_.filter()->shape().bytes;
  // Watchers at the same offset share their messages.
  std::map<size_t, std::shared_ptr<const v1::WatchKeysResponse>> pieces;
  std::lock_guard lock(mutex_);
  for (Watcher& watcher : watchers_) {
    if (!watcher.caught_up || !watcher.takes_filter) continue;
    if (watcher.filter_generation != live_keys_.generation()) {
      watcher.filter_generation = live_keys_.generation();
      watcher.filter_offset = 0;
    }
    for (int i = 0; i < options_.pieces_per_step && watcher.filter_offset < bytes; ++i) {
      auto& piece = pieces[watcher.filter_offset];
      if (!piece) piece = PieceAt(watcher.filter_offset);
      watcher.filter_offset += piece->filter_piece().data().size();
      watcher.last_sent_us = clock_.MonotonicUs();
      watcher.sink(piece);
    }
  }
}

void ChangeFeed::Ping(bool vouched) {
  const int64_t now_us = clock_.MonotonicUs();
  v1::WatchKeysResponse message = ChangesOf({}, version_);
  message.set_vouched(vouched);
  const auto ping = std::make_shared<const v1::WatchKeysResponse>(std::move(message));
  std::lock_guard lock(mutex_);
  for (Watcher& watcher : watchers_) {
    if (watcher.caught_up) {
      if (now_us - watcher.last_sent_us < kPingUs) continue;
    } else {
      // A new watcher that has missed nothing needs no database. One that has missed changes waits
      // for it.
      const bool missed_nothing = watcher.after_version == 0 || watcher.after_version >= version_;
      if (!vouched || !missed_nothing || now_us - watcher.last_sent_us < kPingUs) continue;
      // When the database is back, it gets the changes after this version, or a reset.
      if (watcher.after_version == 0) watcher.after_version = version_;
    }
    watcher.last_sent_us = now_us;
    watcher.sink(ping);
  }
}

}  // namespace tollgate::auth
