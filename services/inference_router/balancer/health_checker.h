// Sends health checks to every engine of the catalog, and reads the load of engines that report it
// (engine_load.h). Lives on one loop.
#pragma once

#include <functional>
#include <memory>

#include "common/http/client.h"
#include "common/runtime/loop.h"
#include "services/inference_router/balancer/routing_table.h"

namespace tollgate::inference_router {

class HealthChecker {
 public:
  using TableSource = std::function<std::shared_ptr<const RoutingTable>()>;
  // The client must outlive the checker. Call all methods on the loop. timeout_ms: for a whole
  // check, half of it for the head of the response.
  HealthChecker(Loop& loop, http::Client& client, TableSource table, int64_t interval_ms,
                int64_t timeout_ms);
  ~HealthChecker();

  void Start();
  // Checks all engines immediately, in addition to the regular rounds.
  void CheckNow();

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace tollgate::inference_router
