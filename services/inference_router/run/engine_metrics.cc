#include "services/inference_router/run/engine_metrics.h"

#include <utility>

namespace tollgate::inference_router {

void EngineMetrics::CountRequest(const std::string& engine_id, const std::string& outcome) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<prometheus::Counter>& counter = counters_[engine_id].requests[outcome];
  if (counter == nullptr) {
    counter = metrics::HeldCounter("tollgate_router_engine_requests_total", "Runs on engines.",
                                   {{"engine", engine_id}, {"outcome", outcome}});
  }
  counter->Increment();
}

void EngineMetrics::CountTokens(const std::string& engine_id, int64_t output_tokens) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<prometheus::Counter>& counter = counters_[engine_id].tokens;
  if (counter == nullptr) {
    counter = metrics::HeldCounter("tollgate_router_engine_output_tokens_total",
                                   "Output tokens of the engine's charged answers.",
                                   {{"engine", engine_id}});
  }
  counter->Increment(static_cast<double>(output_tokens));
}

EngineMetrics::Gauges::Gauges(const std::string& engine_id)
    : available(metrics::HeldGauge(
          "tollgate_router_engine_available",
          "1 while this router sends the engine new requests, 0 while it is down or "
          "drained.",
          {{"engine", engine_id}})),
      weight(metrics::HeldGauge(
          "tollgate_router_engine_weight",
          "Weight of the engine when an engine is chosen: its weight in the catalog, less during "
          "its slow start. 0: it gets requests only while no other engine can take them.",
          {{"engine", engine_id}})),
      running(metrics::HeldGauge("tollgate_router_engine_running_requests",
                                 "Requests of this router that are running on the engine.",
                                 {{"engine", engine_id}})),
      most(metrics::HeldGauge("tollgate_router_engine_max_requests",
                              "Limit on the requests that may run on the engine at a time "
                              "(max_concurrency in the catalog); 0: no limit.",
                              {{"engine", engine_id}})),
      work(metrics::HeldGauge("tollgate_router_engine_outstanding_tokens",
                              "Remaining work of this router's requests on the engine: prompt "
                              "tokens not read yet, plus four times the expected output tokens.",
                              {{"engine", engine_id}})),
      queue(metrics::HeldGauge(
          "tollgate_router_engine_queue",
          "Requests of all callers that wait at the engine, by its own metrics; -1: unknown.",
          {{"engine", engine_id}})),
      reported_running(metrics::HeldGauge(
          "tollgate_router_engine_reported_running",
          "Requests of all callers that run on the engine, by its own metrics; -1: unknown.",
          {{"engine", engine_id}})),
      cache_use(metrics::HeldGauge(
          "tollgate_router_engine_cache_use_ratio",
          "Share of the engine's KV cache in use, by its own metrics; -1: unknown.",
          {{"engine", engine_id}})) {}

void EngineMetrics::Gauges::Set(EnginePointer shown_engine, bool left, int64_t now_us) {
  engine = std::move(shown_engine);
  if (left) {  // an engine that has left is not down
    available.reset();
    weight.reset();
  } else {
    available->Set(engine->Available(now_us) ? 1 : 0);
    weight->Set(static_cast<double>(engine->Share(now_us)) / 1000);
  }
  running->Set(static_cast<double>(engine->running()));
  most->Set(static_cast<double>(engine->engine().max_concurrency()));
  work->Set(static_cast<double>(engine->work()));
  const EngineLoad load = engine->load();
  const EngineLoad shown = load.Fresh(now_us) ? load : EngineLoad{};
  queue->Set(static_cast<double>(shown.queued));
  reported_running->Set(static_cast<double>(shown.running));
  cache_use->Set(shown.cache_use);
}

void EngineMetrics::Show(const RoutingTable& table, int64_t now_us) {
  const std::lock_guard lock(mutex_);
  std::unordered_map<std::string, Gauges> before = std::exchange(gauges_, {});
  for (const EnginePointer& engine : table.engines()) {
    auto known = before.extract(engine->id());
    const bool stays =
        known && known.mapped().available != nullptr;  // else the engine has come back
    const auto at = stays ? gauges_.insert(std::move(known)).position
                          : gauges_.try_emplace(engine->id(), engine->id()).first;
    at->second.Set(engine, /*left=*/false, now_us);
  }
  // Keeps engines that have left while requests run on them: whoever stops such an engine waits for
  // its last answers.
  while (!before.empty()) {
    auto gone = before.extract(before.begin());
    const EnginePointer engine = gone.mapped().engine;
    if (engine->running() == 0) continue;
    gauges_.insert(std::move(gone)).position->second.Set(engine, /*left=*/true, now_us);
  }
  for (auto& [id, counters] : counters_) {
    if (counters.seen_us == 0 || gauges_.contains(id)) counters.seen_us = now_us;
  }
  std::erase_if(counters_,
                [&](const auto& entry) { return now_us - entry.second.seen_us > count_us_; });
}

}  // namespace tollgate::inference_router
