#include "services/inference_router/balancer/routing_table.h"

#include <algorithm>
#include <utility>

namespace tollgate::inference_router {
namespace {

// Compares everything except the weight, which may change for a known engine.
bool Same(const catalog::v1::Engine& a, const catalog::v1::Engine& b) {
  return a.id() == b.id() && a.kind() == b.kind() && a.base_url() == b.base_url() &&
         a.api_key() == b.api_key() && a.max_concurrency() == b.max_concurrency() &&
         a.shared_cache() == b.shared_cache() && a.zone() == b.zone();
}

EnginePointer FindSame(const RoutingTable* previous, const catalog::v1::Engine& engine) {
  if (previous == nullptr) return nullptr;
  for (const EnginePointer& known : previous->engines()) {
    if (Same(known->engine(), engine)) return known;
  }
  return nullptr;
}

// A new engine has an empty cache, so it starts slowly. A known engine with changed settings
// continues its slow start. At the start of a router all engines are equal.
EnginePointer MakeEngine(const catalog::v1::Engine& engine, http::BaseUrl base,
                         const RoutingTable* previous, const RoutingOptions& options) {
  const bool remote = !options.zone.empty() && engine.zone() != options.zone;
  auto state =
      std::make_shared<EngineState>(engine, std::move(base), options.slow_start_us, remote);
  if (previous == nullptr) return state;
  state->BeginSlowStart(options.now_us);
  for (const EnginePointer& known : previous->engines()) {
    if (known->engine().base_url() != engine.base_url()) continue;
    // An engine was one entry while its addresses were unknown.
    if (known->id() != engine.id() && known->id() != state->catalog_id()) continue;
    state->BeginSlowStart(known->slow_since_us());
  }
  return state;
}

std::string TargetOf(const http::Origin& origin) {
  return origin.host + ":" + std::to_string(origin.port);
}

std::vector<std::string> SortedAddresses(const AddressesOf& addresses_of,
                                         const std::string& target) {
  std::vector<std::string> addresses = addresses_of(target);
  std::sort(addresses.begin(), addresses.end());
  return addresses;
}

PriorityClass ClassOf(catalog::v1::Priority priority) {
  switch (priority) {
    case catalog::v1::PRIORITY_HIGH:
      return PriorityClass::kHigh;
    case catalog::v1::PRIORITY_LOW:
      return PriorityClass::kLow;
    default:
      return PriorityClass::kNormal;
  }
}

// Returns "10.0.0.1" for "10.0.0.1:8000", "fd00::1" for "[fd00::1]:8000".
std::string WithoutPort(const std::string& address) {
  const std::string host = address.substr(0, address.rfind(':'));
  return host.starts_with('[') ? host.substr(1, host.size() - 2) : host;
}

}  // namespace

RoutingTable::RoutingTable(const catalog::v1::Snapshot& snapshot, const RoutingTable* previous,
                           const RoutingOptions& options)
    : version_(snapshot.version()) {
  std::unordered_map<std::string, std::vector<EnginePointer>> pools;
  for (const catalog::v1::Pool& pool : snapshot.pools()) {
    std::vector<EnginePointer>& engines = pools[pool.name()];
    PoolParts& parts = parts_[pool.name()];
    if (previous != nullptr) {
      const auto known = previous->parts_.find(pool.name());
      if (known != previous->parts_.end()) parts = known->second;
    }
    if (parts.queue == nullptr) parts.queue = std::make_shared<WaitQueue>(options.queue);
    if (parts.retries == nullptr) parts.retries = std::make_shared<RetryBudget>();
    for (const catalog::v1::Engine& engine : pool.engines()) {
      AddEngine(pool.name(), engine, previous, options, engines);
    }
    if (engines.size() > 1 && parts.prefixes == nullptr) {
      parts.prefixes = std::make_shared<PrefixTable>(engines.size());
    }
  }
  const auto route_of = [&pools, this](const catalog::v1::Model& model) {
    Route route;
    route.engine_model = model.engine_model().empty() ? model.id() : model.engine_model();
    route.context_window = model.context_window();
    route.serving = model.serving();
    route.priority = ClassOf(model.priority());
    auto pool = pools.find(model.pool());
    if (pool != pools.end()) {
      const PoolParts& parts = parts_.at(model.pool());
      route.engines = pool->second;
      route.queue = parts.queue;
      route.retries = parts.retries;
      if (route.engines.size() > 1) route.prefixes = parts.prefixes;
      route.shared_cache =
          std::all_of(route.engines.begin(), route.engines.end(),
                      [](const auto& engine) { return engine->engine().shared_cache(); });
    }
    return route;
  };
  for (const catalog::v1::Model& model : snapshot.models()) {
    routes_[model.id()] = route_of(model);
    models_of_pool_.emplace(model.pool(), model.id());
  }
  if (snapshot.has_unlisted()) {
    unlisted_ = route_of(snapshot.unlisted());
    unlisted_->unlisted = true;
  }
}

void RoutingTable::AddEngine(const std::string& pool, const catalog::v1::Engine& engine,
                             const RoutingTable* previous, const RoutingOptions& options,
                             std::vector<EnginePointer>& engines) {
  const auto add = [&](const catalog::v1::Engine& one, http::BaseUrl base) {
    EnginePointer state = FindSame(previous, one);
    if (state == nullptr) {
      state = MakeEngine(one, std::move(base), previous, options);
    } else {
      state->set_weight(one.has_weight() ? one.weight() : 1);
    }
    engines.push_back(state);
    engines_.push_back(state);
    pools_.push_back(pool);
  };
  const std::optional<http::BaseUrl> base = http::ParseBaseUrl(engine.base_url());
  if (!base) {
    unusable_.push_back(engine.id());
    return;
  }
  std::vector<std::string> addresses;
  if (engine.each_address() && options.addresses_of != nullptr) {
    const std::string target = TargetOf(base->origin);
    addresses = SortedAddresses(options.addresses_of, target);
    addresses_[target] = addresses;
  }
  for (const std::string& address : addresses) {
    catalog::v1::Engine one = engine;
    http::BaseUrl there = *base;
    there.origin.address = WithoutPort(address);
    one.set_id(engine.id() + "@" + there.origin.address);
    add(one, std::move(there));
  }
  if (addresses.empty()) add(engine, *base);
}

bool RoutingTable::AddressesChanged(const AddressesOf& addresses_of) const {
  return std::any_of(addresses_.begin(), addresses_.end(), [&](const auto& known) {
    return SortedAddresses(addresses_of, known.first) != known.second;
  });
}

std::vector<std::string> RoutingTable::ModelsOf(const std::string& pool) const {
  std::vector<std::string> models;
  const auto [first, last] = models_of_pool_.equal_range(pool);
  for (auto at = first; at != last; ++at) models.push_back(at->second);
  return models;
}

size_t RoutingTable::waiting() const {
  size_t waiting = 0;
  for (const auto& [pool, parts] : parts_) waiting += parts.queue->waiting();
  return waiting;
}

const Route* RoutingTable::Find(std::string_view model) const {
  auto found = routes_.find(std::string(model));
  return found == routes_.end() ? nullptr : &found->second;
}

}  // namespace tollgate::inference_router
