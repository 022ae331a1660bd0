// The stream of key changes that gateways watch. Every replica polls the version in the database
// every 250 ms, so it also sees changes made through other replicas. A ping each second tells
// watchers that their cached keys are current. While the database is unreachable, the pings say
// that the replica vouches for its keys, until vouch_us is over (decision 58). New watchers that
// have missed nothing get these pings, too; the others wait for the database. Watchers that accept
// it get the filter of live keys in pieces, with changes in between, so that a large filter does
// not delay a change. See decision 14, docs/design/keys.md 4, ADR 0013.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "common/base/clock.h"
#include "common/observability/metrics.h"
#include "common/runtime/periodic_thread.h"
#include "services/auth/storage/auth_store.h"
#include "services/auth/storage/live_keys.h"

namespace tollgate::auth {

class ChangeFeed {
 public:
  // Receives the messages in order, on the feed's thread. Must not block, and must not call the
  // feed.
  using Sink = std::function<void(std::shared_ptr<const v1::WatchKeysResponse>)>;

  struct Options {
    LiveKeys::Options live_keys;
    // A piece stays far below gRPC's limit of 4 MiB per message. A watcher gets at most 16 MiB a
    // second, because messages for a slow one wait in memory.
    size_t piece_bytes = size_t{1} << 20;
    int pieces_per_step = 4;
    // How long a replica vouches for its cached keys while the database is unreachable (decision
    // 58).
    int64_t vouch_us = 600'000'000;
  };
  ChangeFeed(AuthStore& store, const Clock& clock) : ChangeFeed(store, clock, Options()) {}
  ChangeFeed(AuthStore& store, const Clock& clock, Options options)
      : store_(store),
        clock_(clock),
        options_(options),
        live_keys_(store, options.live_keys),
        version_metric_(metrics::Gauge("tollgate_auth_key_version",
                                       "Version of the latest change of keys that was sent.")),
        unreachable_metric_(metrics::Gauge(
            "tollgate_auth_database_unreachable_seconds",
            "Seconds since auth last read its database, while that is unreachable; else 0. Until "
            "auth.vouch_seconds keys in memory keep working.")) {}
  ~ChangeFeed() { Stop(); }

  // Starts the thread that runs Step every 250 ms. Tests call Step without it.
  void Start();
  void Stop() { thread_.Stop(); }
  // Runs the next Step at once. Thread-safe.
  void Wake() { thread_.Wake(); }

  // The first messages bring the watcher up to date: the changes after after_version, or a reset if
  // there are too many. Thread-safe.
  uint64_t Subscribe(const v1::WatchKeysRequest& request, Sink sink);
  // The sink is not called after this returns. Thread-safe.
  void Unsubscribe(uint64_t watcher);

  // Reads new changes from the database and sends them. One thread at a time.
  void Step();
  // Whether the last Step could read the database.
  bool healthy() const { return healthy_; }
  int watchers() const { return watcher_count_; }

 private:
  struct Watcher {
    uint64_t id = 0;
    int64_t after_version = 0;
    bool takes_filter = false;
    bool has_filter = false;
    Sink sink;
    bool caught_up = false;  // has received its first messages
    int64_t last_sent_us = 0;
    // Generation of the filter that the watcher has, or receives from filter_offset on; 0: none.
    int64_t filter_generation = 0;
    size_t filter_offset = 0;
  };
  using Messages = std::vector<std::shared_ptr<const v1::WatchKeysResponse>>;

  Result<void> Poll();
  Result<void> BroadcastUpTo(int64_t version);
  Result<void> CatchUpNewWatchers();
  Result<Messages> MessagesAfter(int64_t after_version);
  void Broadcast(const v1::WatchKeysResponse& message);
  void SendFilters();
  std::shared_ptr<const v1::WatchKeysResponse> PieceAt(size_t offset) const;
  void Ping(bool vouched);
  // Logs a change of health and sets the metric.
  void TellHealth(const Result<void>& polled, bool vouches);

  AuthStore& store_;
  const Clock& clock_;
  const Options options_;
  // Used by the thread of Step only.
  LiveKeys live_keys_;
  prometheus::Gauge& version_metric_;
  prometheus::Gauge& unreachable_metric_;
  bool vouched_ = false;  // at the end of the last Step
  // The version that all caught-up watchers have received; -1 before the first read. Used by the
  // thread of Step only.
  int64_t version_ = -1;
  // Time of the last read of the database; monotonic.
  int64_t read_us_ = 0;

  std::mutex mutex_;
  std::list<Watcher> watchers_;
  uint64_t next_id_ = 1;

  PeriodicThread thread_;
  std::atomic<bool> healthy_{false};
  std::atomic<int> watcher_count_{0};
};

}  // namespace tollgate::auth
