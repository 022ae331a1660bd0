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
#include "services/inference_router/balancer/token_pace.h"
#include "tollgate/catalog/v1/catalog.pb.h"

namespace tollgate::inference_router {

// Thread-safe. Stays alive while a request uses it, even after the catalog has dropped the engine.
class EngineState {
 public:
  // slow_start_us: duration of the ramp after an engine has come back; 0: it gets its whole share
  // immediately. remote: the engine is in another zone than this process (ADR 0036).
  EngineState(catalog::v1::Engine engine, http::BaseUrl base, int64_t slow_start_us = 0,
              bool remote = false);

  // "ID@ADDRESS" for one address of an engine with `each_address`.
  const std::string& id() const { return engine_.id(); }
  // The id without the address, for records that outlive the address.
  std::string_view catalog_id() const;
  const catalog::v1::Engine& engine() const { return engine_; }
  const http::BaseUrl& base() const { return base_; }

  bool remote() const { return remote_; }

  // Engines are numbered in the order of creation from 1 to 65,535, then from 1 again. Two engines
  // with the same number would only share hints (prefix_table.h).
  uint16_t number() const { return number_; }

  // Counts one more request, and its work in tokens (work_meter.h). Returns false if
  // max_concurrency requests are running.
  bool TryEnter(int64_t work = 0);
  // work: the part of it that is left.
  void Leave(int64_t work = 0);
  // Call when work has been done, in tokens.
  void OnWorkDone(int64_t work) { work_.fetch_sub(work, std::memory_order_relaxed); }
  int64_t running() const { return running_.load(std::memory_order_relaxed); }
  // Work of this process that the engine still has to do, in tokens.
  int64_t work() const { return work_.load(std::memory_order_relaxed); }
  // Whether max_concurrency requests are running.
  bool IsFull() const;

  // work() plus, while the engine's report is fresh, an estimate of the work of others.
  int64_t Load(int64_t now_us) const;
  // Whether a fresh report says that the KV cache is full: a further request would wait, or evict
  // another one.
  bool CacheIsFull(int64_t now_us) const;

  // Capacity in relation to the other engines of the pool, from the catalog. 0: the engine gets new
  // requests only while no other engine can take them.
  int64_t weight() const { return weight_.load(std::memory_order_relaxed); }
  void set_weight(int64_t weight) { weight_.store(weight, std::memory_order_relaxed); }
  // The weight in thousandths. During slow start, a part of it that grows from a tenth. A tenth
  // also for an engine after failed connections, until it has answered.
  int64_t Share(int64_t now_us) const;
  // Starts the ramp of an engine that is new or has come back; 0: the slow start is over.
  void BeginSlowStart(int64_t since_us) {
    slow_since_us_.store(since_us, std::memory_order_relaxed);
  }
  int64_t slow_since_us() const { return slow_since_us_.load(std::memory_order_relaxed); }

  // Whether the engine is neither drained nor unhealthy.
  bool Available(int64_t now_us) const;
  // Whether the engine is not marked down by health checks and not in back-off after a connect
  // failure.
  bool Healthy(int64_t now_us) const;
  // Whether an operator has drained the engine, so that it gets no new requests.
  bool drained() const { return drained_.load(std::memory_order_relaxed); }
  // A resumed engine begins its slow start.
  void SetDrained(bool drained, int64_t now_us);
  // Time since health checks marked the engine down, in microseconds; 0: not marked down.
  int64_t DownForUs(int64_t now_us) const;
  // Call when the engine has asked for no requests before this time.
  void PauseUntil(int64_t until_us);
  // Microseconds until the pause ends; 0: not paused.
  int64_t PausedUs(int64_t now_us) const;
  // Milliseconds until the back-off ends; at least 1000.
  int64_t RetryAfterMs(int64_t now_us) const;

  // Backs off for 1 s, then 2 s, 4 s … up to 15 s.
  void OnConnectFailure(int64_t now_us);
  // Call when the engine has answered a request or a health check. If it was down or in back-off,
  // its slow start begins.
  void OnSuccess(int64_t now_us);
  // Call when a health check failed. definite: connection refused, which marks the engine down
  // immediately. Any other failure must happen twice in a row.
  void OnHealthFailure(bool definite, int64_t now_us);

  // The load from the engine's own metrics, if they are read (health_checker.h); check Fresh. It
  // includes all callers, whereas running() counts only this router's requests.
  EngineLoad load() const;
  void NoteLoad(const EngineLoad& load);

  // Whether a fresh report says that requests wait at the engine.
  bool HasQueue(int64_t now_us) const;

  TokenPace& pace() { return pace_; }
  const TokenPace& pace() const { return pace_; }

  // Results of health checks and requests, for operators.
  void NoteHealthCheck(int64_t took_us);
  void NoteFirstOutput(int64_t took_us);
  void NoteFailure(std::string text, int64_t wall_us);
  int64_t health_check_us() const { return health_check_us_.load(std::memory_order_relaxed); }
  // A moving average with weight 1/8 for each request; 0: no request had output yet.
  int64_t first_output_us() const { return first_output_us_.load(std::memory_order_relaxed); }
  struct Failure {
    std::string text;
    int64_t wall_us = 0;  // 0: no failure yet
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
  // Copies of load_ for the choice of an engine, readable without a lock.
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
  TokenPace pace_;
};

using EnginePointer = std::shared_ptr<EngineState>;

}  // namespace tollgate::inference_router
