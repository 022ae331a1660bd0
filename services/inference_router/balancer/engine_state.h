// One engine as every request of this process sees it: how much runs there and whether it is up.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "common/http/client.h"
#include "tollgate/catalog/v1/catalog.pb.h"

namespace tollgate::inference_router {

// Thread-safe. Lives as long as a request holds it, also after it has left the catalog.
class EngineState {
 public:
  EngineState(catalog::v1::Engine engine, http::BaseUrl base);

  const std::string& id() const { return engine_.id(); }
  const catalog::v1::Engine& engine() const { return engine_; }
  const http::BaseUrl& base() const { return base_; }

  // Takes a place for one request. False when max_concurrency requests run.
  bool TryEnter();
  void Leave() { running_.fetch_sub(1, std::memory_order_relaxed); }
  int64_t running() const { return running_.load(std::memory_order_relaxed); }

  // Up as far as anyone knows: not found down by a health check and not resting.
  bool Available(int64_t now_us) const;
  // Milliseconds until it makes sense to try again; at least 1000.
  int64_t RetryAfterMs(int64_t now_us) const;

  // A connection could not be made: rests 1 s, then 2, 4 … up to 15 s.
  void OnConnectFailure(int64_t now_us);
  // It answered a request or a health check.
  void OnSuccess();
  // A health check failed. definite: nobody listens there; else two in a row are needed.
  void OnHealthFailure(bool definite);

 private:
  const catalog::v1::Engine engine_;
  const http::BaseUrl base_;
  std::atomic<int64_t> running_{0};
  std::atomic<int> connect_failures_{0};
  std::atomic<int> health_failures_{0};
  std::atomic<bool> down_{false};
  std::atomic<int64_t> rests_until_us_{0};
};

}  // namespace tollgate::inference_router
