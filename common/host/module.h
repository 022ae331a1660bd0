// What every service and the gateway are to the process that runs them. A module is built from its
// configuration and its neighbours' clients, and never knows whether a neighbour is local.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/error/error.h"

namespace grpc {
class ServerBuilder;
}

namespace tollgate {

class Module {
 public:
  virtual ~Module() = default;
  // Short name for logs, metrics and /readyz.
  virtual std::string_view name() const = 0;
  // Adds this module's gRPC services. Called before Start; the services must bear calls from the
  // moment the server runs, and answer UNAVAILABLE until Start is done.
  virtual void Register(grpc::ServerBuilder& builder) {}
  // Opens storage, connects to neighbours, starts to listen. Loops are running.
  virtual Result<void> Start() = 0;
  // Whether it can serve now (/readyz). Thread-safe.
  virtual bool Ready() const = 0;
  // Takes no new work and lets the running work end, at most until the deadline (monotonic µs).
  virtual void Drain(int64_t deadline_us) {}
  // Releases everything; after it no callback of this module runs any more.
  virtual void Stop() {}
};

}  // namespace tollgate
