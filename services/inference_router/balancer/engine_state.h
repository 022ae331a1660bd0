// The state of one engine, shared by all requests of this process: running requests and health.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "common/http/client.h"
#include "services/inference_router/balancer/engine_load.h"
#include "tollgate/catalog/v1/catalog.pb.h"

namespace tollgate::inference_router {

// Thread-safe. Shared: stays alive while a request uses it, even after the catalog drops it.
class EngineState {
 public:
  EngineState(catalog::v1::Engine engine, http::BaseUrl base);

  const std::string& id() const { return engine_.id(); }
  const catalog::v1::Engine& engine() const { return engine_; }
  const http::BaseUrl& base() const { return base_; }

  // Counts one more request. False if max_concurrency requests are running.
  bool TryEnter();
  void Leave() { running_.fetch_sub(1, std::memory_order_relaxed); }
  int64_t running() const { return running_.load(std::memory_order_relaxed); }

  // Neither drained nor unhealthy.
  bool Available(int64_t now_us) const;
  // Not marked down by health checks, and not in back-off after a connect failure.
  bool Healthy(int64_t now_us) const;
  // An operator wants it to get no new requests.
  bool drained() const { return drained_.load(std::memory_order_relaxed); }
  void set_drained(bool drained) { drained_.store(drained, std::memory_order_relaxed); }
  // Health checks have failed for this long, in microseconds; 0: the engine is not marked down.
  int64_t DownForUs(int64_t now_us) const;
  // Milliseconds until the back-off ends; at least 1000.
  int64_t RetryAfterMs(int64_t now_us) const;

  // Backs off for 1 s, then 2, 4 … up to 15 s.
  void OnConnectFailure(int64_t now_us);
  // The engine answered a request or a health check.
  void OnSuccess();
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
  std::atomic<int64_t> running_{0};
  std::atomic<int> connect_failures_{0};
  std::atomic<int> health_failures_{0};
  std::atomic<int64_t> down_since_us_{0};  // 0: not marked down
  std::atomic<int64_t> backoff_until_us_{0};
  std::atomic<bool> drained_{false};
  std::atomic<int64_t> health_check_us_{0};
  std::atomic<int64_t> first_output_us_{0};
  mutable std::mutex mutex_;
  Failure failure_;
  EngineLoad load_;
};

using EnginePointer = std::shared_ptr<EngineState>;

}  // namespace tollgate::inference_router
