// The metrics of single engines. They end with the engine, whose address may be used only once.
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
  // count_us: for how long counters outlive their engine, so that its last answers are counted.
  explicit EngineMetrics(int64_t count_us) : count_us_(count_us) {}

  // Counts one run on one engine. outcome: ok, cut_by_credit, client_gone, or the name of the
  // error's row.
  void CountRequest(const std::string& engine_id, const std::string& outcome);
  // Of an answer that ended, reported with its charge.
  void CountTokens(const std::string& engine_id, int64_t output_tokens);

  // Shows the engines of the table as they are now, and those that have left while something still
  // runs on them. now_us: monotonic.
  void Show(const RoutingTable& table, int64_t now_us);

 private:
  struct Counters {
    std::unordered_map<std::string, std::shared_ptr<prometheus::Counter>> requests;  // by outcome
    std::shared_ptr<prometheus::Counter> tokens;
    int64_t seen_us = 0;  // when it was last in the table; 0: not yet looked
  };
  struct Gauges {
    explicit Gauges(const std::string& engine_id);
    // left: it is in the table no more.
    void Set(EnginePointer engine, bool left, int64_t now_us);
    EnginePointer engine;
    std::shared_ptr<prometheus::Gauge> available, weight;
    const std::shared_ptr<prometheus::Gauge> running, most, work;
    // By its own metrics.
    const std::shared_ptr<prometheus::Gauge> queue, reported_running, cache_use;
  };

  const int64_t count_us_;
  std::mutex mutex_;
  std::unordered_map<std::string, Counters> counters_;
  std::unordered_map<std::string, Gauges> gauges_;
};

}  // namespace tollgate::inference_router
