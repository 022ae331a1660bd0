// The current routing table, shared by all loops.
#pragma once

#include <memory>
#include <mutex>

#include "services/inference_router/balancer/routing_table.h"

namespace tollgate::inference_router {

// Thread-safe.
class TableHolder {
 public:
  // Null before the first catalog snapshot.
  std::shared_ptr<const RoutingTable> Get() const {
    std::lock_guard lock(mutex_);
    return table_;
  }
  void Set(std::shared_ptr<const RoutingTable> table) {
    std::lock_guard lock(mutex_);
    table_ = std::move(table);
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const RoutingTable> table_;
};

}  // namespace tollgate::inference_router
