// From a model's id to the engine that gets the request: the catalog's pools with what this process
// knows of each engine. A table never changes; a new catalog makes a new table over the same
// engines.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "services/inference_router/balancer/engine_state.h"
#include "tollgate/catalog/v1/catalog.pb.h"

namespace tollgate::inference_router {

using EnginePointer = std::shared_ptr<EngineState>;

struct Route {
  // The model's name at its engines; empty: the id that was asked for.
  std::string engine_model;
  int64_t context_window = 0;
  bool serving = false;
  // For ids that are not in the catalog (decisions 20): the engines may know them or not.
  bool unlisted = false;
  // May be empty: the pool is missing or has no usable engine.
  std::vector<EnginePointer> engines;
};

class RoutingTable {
 public:
  // Keeps the engines of the earlier table (may be null) that have not changed.
  RoutingTable(const catalog::v1::Snapshot& snapshot, const RoutingTable* before);

  const Route* Find(std::string_view model) const;
  // Where completions of ids that Find does not find may go; null: nowhere.
  const Route* unlisted() const { return unlisted_ ? &*unlisted_ : nullptr; }
  const std::vector<EnginePointer>& engines() const { return engines_; }
  int64_t version() const { return version_; }
  // Engines that were left out because their address can not be understood.
  const std::vector<std::string>& unusable() const { return unusable_; }

 private:
  int64_t version_;
  std::unordered_map<std::string, Route> routes_;
  std::optional<Route> unlisted_;
  std::vector<EnginePointer> engines_;
  std::vector<std::string> unusable_;
};

enum class NoEngine { kNone, kDown, kSaturated };

struct Choice {
  // A place has been taken there (EngineState::TryEnter); the caller gives it back with Leave.
  EnginePointer engine;
  // Why there is none.
  NoEngine why_not = NoEngine::kNone;
  int64_t retry_after_ms = 0;
};

// The available engine with the fewest running requests of this process, other than those tried.
// turn breaks ties evenly: any number that grows.
Choice ChooseEngine(const std::vector<EnginePointer>& engines,
                    const std::vector<EnginePointer>& tried, int64_t now_us, uint64_t turn);

}  // namespace tollgate::inference_router
