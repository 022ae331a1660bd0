// The state of one engine, shared by all requests of this process: its load and its health.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "common/http/client.h"
#include "services/inference_router/balancer/engine_load.h"
#include "tollgate/catalog/v1/catalog.pb.h"

namespace tollgate::inference_router {

// Thread-safe. Shared: stays alive while a request uses it, even after the catalog drops it.
class EngineState {
 public:
  // slow_start_us: over which an engine that has come back gets a growing share; 0: it has its
  // whole share at once.
  // remote: it is in another zone than this process (ADR 0036).
  EngineState(catalog::v1::Engine engine, http::BaseUrl base, int64_t slow_start_us = 0,
              bool remote = false);

  // Of an address of an engine with `each_address`: "ID@ADDRESS".
  const std::string& id() const { return engine_.id(); }
  // Without the address; for records that outlive it.
  std::string_view catalog_id() const;
  const catalog::v1::Engine& engine() const { return engine_; }
  const http::BaseUrl& base() const { return base_; }

  bool remote() const { return remote_; }

  // Engines are numbered as they are made, from 1, and again from 1 after 65,535: two of one number
  // would only share hints (prefix_table.h).
  uint16_t number() const { return number_; }

  // Counts one more request, and its work in tokens (work_meter.h). False if max_concurrency
  // requests are running.
  bool TryEnter(int64_t work = 0);
  // work: what is left of it.
  void Leave(int64_t work = 0);
  // Work has been done, in tokens.
  void OnWorkDone(int64_t work) { work_.fetch_sub(work, std::memory_order_relaxed); }
  int64_t running() const { return running_.load(std::memory_order_relaxed); }
  // The work of this process that the engine still has to do, in tokens.
  int64_t work() const { return work_.load(std::memory_order_relaxed); }
  // max_concurrency requests are running.
  bool IsFull() const;

  // work(), and as long as what it reports is fresh an estimate of the work of others.
  int64_t Load(int64_t now_us) const;
  // It reports, and that is fresh, that its KV cache has no room: a further request would wait, or
  // push another one out.
  bool CacheIsFull(int64_t now_us) const;

  // What it can do in relation to the other engines of its pool, as the catalog says; 0: it takes
  // new requests only while no other can.
  int64_t weight() const { return weight_.load(std::memory_order_relaxed); }
  void set_weight(int64_t weight) { weight_.store(weight, std::memory_order_relaxed); }
  // The weight in thousandths; while it starts slowly, a growing part of it, from a tenth on. An
  // engine that may be asked again after failed connections, and has not answered yet, has a tenth.
  int64_t Share(int64_t now_us) const;
  // It is new, or has come back, at this time; 0: its slow start is over.
  void BeginSlowStart(int64_t since_us) {
    slow_since_us_.store(since_us, std::memory_order_relaxed);
  }
  int64_t slow_since_us() const { return slow_since_us_.load(std::memory_order_relaxed); }

  // Neither drained nor unhealthy.
  bool Available(int64_t now_us) const;
  // Not marked down by health checks, and not in back-off after a connect failure.
  bool Healthy(int64_t now_us) const;
  // An operator wants it to get no new requests.
  bool drained() const { return drained_.load(std::memory_order_relaxed); }
  // One that is resumed begins its slow start.
  void SetDrained(bool drained, int64_t now_us);
  // Health checks have failed for this long, in microseconds; 0: the engine is not marked down.
  int64_t DownForUs(int64_t now_us) const;
  // The engine has said that it takes no request before this time.
  void PauseUntil(int64_t until_us);
  // Microseconds until then; 0: it is not paused.
  int64_t PausedUs(int64_t now_us) const;
  // Milliseconds until the back-off ends; at least 1000.
  int64_t RetryAfterMs(int64_t now_us) const;

  // Backs off for 1 s, then 2, 4 … up to 15 s.
  void OnConnectFailure(int64_t now_us);
  // The engine answered a request or a health check. If it was down or in back-off, its slow start
  // begins.
  void OnSuccess(int64_t now_us);
  // A health check failed. definite: connection refused, which marks the engine down at once; any
  // other failure must happen twice in a row.
  void OnHealthFailure(bool definite, int64_t now_us);

  // What the engine's own metrics say of its load, if they are read (health_checker.h); look at
  // Fresh. It is of all its callers, running() of this router's alone.
  EngineLoad load() const;
  void NoteLoad(const EngineLoad& load);

  // For operators: what health checks and requests have shown of it.
  void NoteHealthCheck(int64_t took_us);
  void NoteFirstOutput(int64_t took_us);
  void NoteFailure(std::string text, int64_t wall_us);
  int64_t health_check_us() const { return health_check_us_.load(std::memory_order_relaxed); }
  // An average in which a request counts for an eighth; 0: none had output.
  int64_t first_output_us() const { return first_output_us_.load(std::memory_order_relaxed); }
  struct Failure {
    std::string text;
    int64_t wall_us = 0;  // 0: there was none
  };
  Failure last_failure() const;

 private:
  const catalog::v1::Engine engine_;
  const http::BaseUrl base_;
  const uint16_t number_;
  const int64_t slow_start_us_;
  const bool remote_;
  std::atomic<int64_t> running_{0};
  std::atomic<int64_t> work_{0};
  // Of load_, for the choice of an engine: without a lock.
  std::atomic<int64_t> reported_requests_{0};
  std::atomic<bool> reported_full_{false};
  std::atomic<int64_t> reported_until_us_{0};
  std::atomic<int64_t> paused_until_us_{0};
  std::atomic<int> connect_failures_{0};
  std::atomic<int> health_failures_{0};
  std::atomic<int64_t> down_since_us_{0};  // 0: not marked down
  std::atomic<int64_t> backoff_until_us_{0};
  std::atomic<bool> drained_{false};
  std::atomic<int64_t> weight_;
  std::atomic<int64_t> slow_since_us_{0};
  std::atomic<int64_t> health_check_us_{0};
  std::atomic<int64_t> first_output_us_{0};
  mutable std::mutex mutex_;
  Failure failure_;
  EngineLoad load_;
};

using EnginePointer = std::shared_ptr<EngineState>;

}  // namespace tollgate::inference_router
