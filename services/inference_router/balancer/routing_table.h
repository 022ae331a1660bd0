// Maps a model's id to the engines that serve it: the catalog's pools, with the state that this
// process keeps of each engine. Immutable; a new catalog snapshot creates a new table, which shares
// the unchanged engines.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "services/inference_router/balancer/engine_state.h"
#include "services/inference_router/balancer/prefix_table.h"
#include "services/inference_router/balancer/retry_budget.h"
#include "services/inference_router/balancer/wait_queue.h"
#include "tollgate/catalog/v1/catalog.pb.h"

namespace tollgate::inference_router {

struct Route {
  // The model's name on its engines; empty: the requested id.
  std::string engine_model;
  int64_t context_window = 0;  // tokens
  bool serving = false;
  // The route of ids that are not in the catalog (decision 20). Its engines may not know the id.
  bool unlisted = false;
  // Empty if the pool is missing or has no usable engine.
  std::vector<EnginePointer> engines;
  // The pool's queue, shared by its models. Null if the pool is missing.
  std::shared_ptr<WaitQueue> queue;
  // The pool's budget. Null if the pool is missing.
  std::shared_ptr<RetryBudget> retries;
  // The pool's table. Null if it has fewer than two engines.
  std::shared_ptr<PrefixTable> prefixes;
  // The operator has declared that all engines share their prefix cache among workspaces.
  bool shared_cache = false;
  // Priority of the model's waiting requests.
  PriorityClass priority = PriorityClass::kNormal;
};

// Returns the addresses of "name:port", each with the port; empty: unknown (yet).
using AddressesOf = std::function<std::vector<std::string>(const std::string& target)>;

struct RoutingOptions {
  // Limits of each new queue.
  WaitQueueLimits queue;
  // Slow start of each engine (EngineState), and the time of the table's creation; monotonic.
  int64_t slow_start_us = 0;
  int64_t now_us = 0;
  // Zone of this process; empty: no engine is preferred for its zone.
  std::string zone;
  // For engines with each_address, which count as one engine while no address is known. May be
  // null.
  AddressesOf addresses_of;
};

class RoutingTable {
 public:
  // Shares the unchanged engines and the parts of pools with the previous table, which may be null,
  // and updates the weights of these engines. An engine that the previous table does not have
  // begins a slow start.
  RoutingTable(const catalog::v1::Snapshot& snapshot, const RoutingTable* previous,
               const RoutingOptions& options = {});

  const Route* Find(std::string_view model) const;
  // The route of completions with an id that Find does not know; null if the catalog has none.
  const Route* unlisted() const { return unlisted_ ? &*unlisted_ : nullptr; }
  // Number of requests that wait for a place at an engine.
  size_t waiting() const;
  const std::vector<EnginePointer>& engines() const { return engines_; }
  // The pool of each engine in engines(), and the ids of the models that a pool serves.
  const std::vector<std::string>& pools() const { return pools_; }
  std::vector<std::string> ModelsOf(const std::string& pool) const;
  int64_t version() const { return version_; }
  // Ids of engines that were omitted because their base_url is invalid.
  const std::vector<std::string>& unusable() const { return unusable_; }
  // Whether the names of engines with each_address resolve to other addresses than when the table
  // was created.
  bool AddressesChanged(const AddressesOf& addresses_of) const;

 private:
  // The parts that all requests for a pool share.
  struct PoolParts {
    std::shared_ptr<WaitQueue> queue;
    std::shared_ptr<RetryBudget> retries;
    std::shared_ptr<PrefixTable> prefixes;
  };

  // Adds the engine, or one for each of its addresses, to the pool.
  void AddEngine(const std::string& pool, const catalog::v1::Engine& engine,
                 const RoutingTable* previous, const RoutingOptions& options,
                 std::vector<EnginePointer>& engines);

  int64_t version_;
  std::unordered_map<std::string, Route> routes_;
  std::optional<Route> unlisted_;
  std::unordered_map<std::string, PoolParts> parts_;  // by pool
  std::vector<EnginePointer> engines_;
  std::vector<std::string> pools_;
  std::multimap<std::string, std::string> models_of_pool_;
  std::vector<std::string> unusable_;
  std::map<std::string, std::vector<std::string>> addresses_;  // by target, sorted
};

}  // namespace tollgate::inference_router
