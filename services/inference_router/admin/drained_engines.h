// The engines that get no new requests because an operator drained them. Kept in a file, so that a
// restart or a changed catalog does not resume them. Thread-safe.
#pragma once

#include <mutex>
#include <set>
#include <string>

#include "common/error/error.h"
#include "services/inference_router/balancer/routing_table.h"

namespace tollgate::inference_router {

class DrainedEngines {
 public:
  // Reads the file, one id per line. Without a file no engine is drained.
  Result<void> Open(const std::string& path);
  // Writes the file, which blocks. An error changes nothing. Call Mark afterwards.
  Result<void> Set(const std::string& engine, bool drained);
  // Marks the engines of a table. Call it before the table is published and again afterwards,
  // because Set may run in between. now_us: monotonic; resumed engines begin their slow start.
  void Mark(const RoutingTable& table, int64_t now_us) const;
  std::set<std::string> ids() const;

 private:
  Result<void> Write(const std::set<std::string>& ids) const;

  std::mutex write_mutex_;  // guards the file; locked before mutex_
  std::string path_;
  mutable std::mutex mutex_;
  std::set<std::string> ids_;
};

}  // namespace tollgate::inference_router
