#include "services/inference_router/balancer/routing_table.h"

#include <algorithm>

namespace tollgate::inference_router {
namespace {

bool Same(const catalog::v1::Engine& a, const catalog::v1::Engine& b) {
  return a.id() == b.id() && a.kind() == b.kind() && a.base_url() == b.base_url() &&
         a.api_key() == b.api_key() && a.max_concurrency() == b.max_concurrency();
}

EnginePointer FindSame(const RoutingTable* before, const catalog::v1::Engine& engine) {
  if (before == nullptr) return nullptr;
  for (const EnginePointer& known : before->engines()) {
    if (Same(known->engine(), engine)) return known;
  }
  return nullptr;
}

}  // namespace

RoutingTable::RoutingTable(const catalog::v1::Snapshot& snapshot, const RoutingTable* before)
    : version_(snapshot.version()) {
  std::unordered_map<std::string, std::vector<EnginePointer>> pools;
  for (const catalog::v1::Pool& pool : snapshot.pools()) {
    std::vector<EnginePointer>& engines = pools[pool.name()];
    for (const catalog::v1::Engine& engine : pool.engines()) {
      EnginePointer state = FindSame(before, engine);
      if (state == nullptr) {
        std::optional<http::BaseUrl> base = http::ParseBaseUrl(engine.base_url());
        if (!base) {
          unusable_.push_back(engine.id());
          continue;
        }
        state = std::make_shared<EngineState>(engine, *std::move(base));
      }
      engines.push_back(state);
      engines_.push_back(state);
    }
  }
  const auto route_of = [&pools](const catalog::v1::Model& model) {
    Route route;
    route.engine_model = model.engine_model().empty() ? model.id() : model.engine_model();
    route.context_window = model.context_window();
    route.serving = model.serving();
    auto pool = pools.find(model.pool());
    if (pool != pools.end()) route.engines = pool->second;
    return route;
  };
  for (const catalog::v1::Model& model : snapshot.models()) routes_[model.id()] = route_of(model);
  if (snapshot.has_unlisted()) {
    unlisted_ = route_of(snapshot.unlisted());
    unlisted_->unlisted = true;
  }
}

const Route* RoutingTable::Find(std::string_view model) const {
  auto found = routes_.find(std::string(model));
  return found == routes_.end() ? nullptr : &found->second;
}

Choice ChooseEngine(const std::vector<EnginePointer>& engines,
                    const std::vector<EnginePointer>& tried, int64_t now_us, uint64_t turn) {
  Choice choice;
  bool saturated = false;
  // An engine may fill up between the look and the step in; then the next best is taken.
  std::vector<EnginePointer> full;
  for (size_t round = 0; round <= engines.size(); ++round) {
    EnginePointer best;
    for (size_t i = 0; i < engines.size(); ++i) {
      const EnginePointer& engine = engines[(i + turn) % engines.size()];
      if (!engine->Available(now_us)) continue;
      if (std::find(tried.begin(), tried.end(), engine) != tried.end()) continue;
      if (std::find(full.begin(), full.end(), engine) != full.end()) continue;
      if (best == nullptr || engine->running() < best->running()) best = engine;
    }
    if (best == nullptr) break;
    if (best->TryEnter()) {
      choice.engine = std::move(best);
      return choice;
    }
    saturated = true;
    full.push_back(std::move(best));
  }
  choice.why_not = saturated ? NoEngine::kSaturated : NoEngine::kDown;
  choice.retry_after_ms = 1000;
  if (!saturated && !engines.empty()) {
    choice.retry_after_ms = INT64_MAX;
    for (const EnginePointer& engine : engines) {
      choice.retry_after_ms = std::min(choice.retry_after_ms, engine->RetryAfterMs(now_us));
    }
  }
  return choice;
}

}  // namespace tollgate::inference_router
