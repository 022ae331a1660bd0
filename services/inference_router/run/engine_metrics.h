// The metrics per engine. They are removed with the engine, because an address may never be used
// again.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "common/observability/held_metrics.h"
#include "services/inference_router/balancer/routing_table.h"

namespace tollgate::inference_router {

// Thread-safe.
class EngineMetrics {
 public:
  // count_us: time that counters outlive their engine, so that its last answers are counted.
  explicit EngineMetrics(int64_t count_us) : count_us_(count_us) {}

  // Counts one run on one engine. outcome: ok, cut_by_credit, client_gone, or the name of the
  // error's row.
  void CountRequest(const std::string& engine_id, const std::string& outcome);
  // Counts the tokens of an answer when its charge is known.
  void CountTokens(const std::string& engine_id, int64_t output_tokens);

  // Shows the current state of the table's engines, and of engines that have left while requests
  // still run on them. now_us: monotonic.
  void Show(const RoutingTable& table, int64_t now_us);

 private:
  struct Counters {
    std::unordered_map<std::string, std::shared_ptr<prometheus::Counter>> requests;  // by outcome
    std::shared_ptr<prometheus::Counter> tokens;
    int64_t seen_us = 0;  // when last in the table; 0: not checked yet
  };
  struct Gauges {
    explicit Gauges(const std::string& engine_id);
    // left: the engine is no longer in the table.
    void Set(EnginePointer engine, bool left, int64_t now_us);
    EnginePointer engine;
    std::shared_ptr<prometheus::Gauge> available, weight;
    const std::shared_ptr<prometheus::Gauge> running, most, work;
    // From the engine's own metrics.
    const std::shared_ptr<prometheus::Gauge> queue, reported_running, cache_use;
  };

  const int64_t count_us_;
  std::mutex mutex_;
  std::unordered_map<std::string, Counters> counters_;
  std::unordered_map<std::string, Gauges> gauges_;
};

}  // namespace tollgate::inference_router
