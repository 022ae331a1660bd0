// The engines that get no new requests since an operator wants it so. Kept in a file, so that a
// restart or a changed catalog does not bring them back. Thread-safe.
#pragma once

#include <mutex>
#include <set>
#include <string>

#include "common/error/error.h"
#include "services/inference_router/balancer/routing_table.h"

namespace tollgate::inference_router {

class DrainedEngines {
 public:
  // Reads the file, one id a line; none: no engine is drained.
  Result<void> Open(const std::string& path);
  // Writes the file, which blocks. An error changes nothing. Mark the table then.
  Result<void> Set(const std::string& engine, bool drained);
  // Marks the engines of a table. Before the table is used, and again when it is: Set may come
  // between. now_us: monotonic; resumed engines begin their slow start.
  void Mark(const RoutingTable& table, int64_t now_us) const;
  std::set<std::string> ids() const;

 private:
  Result<void> Write(const std::set<std::string>& ids) const;

  std::mutex write_mutex_;  // of the file; taken before the other
  std::string path_;
  mutable std::mutex mutex_;
  std::set<std::string> ids_;
};

}  // namespace tollgate::inference_router
