// The interface between a module (the gateway or a service) and the process that runs it. A module
// is built from its configuration and the clients of other services, and does not depend on whether
// those run in the same process.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "common/error/error.h"
#include "common/rpc/callers.h"

namespace grpc {
class ServerBuilder;
}

namespace tollgate {

class Module {
 public:
  virtual ~Module() = default;
  // Short name for logs, metrics and /readyz.
  virtual std::string_view name() const = 0;
  // Adds the gRPC services of this module. Called before Start: calls can arrive as soon as the
  // server runs, and the services must respond UNAVAILABLE until Start has returned.
  virtual void Register(grpc::ServerBuilder& builder) {}
  // As Register, for the admin services, which have their own server (decision 62).
  virtual void RegisterAdmin(grpc::ServerBuilder& builder) {}
  // Callers of the services added by Register and RegisterAdmin: rows that cover every method
  // (common/rpc/callers.h). Services of the package tollgate.admin.v1 need no rows: they are for
  // rpc::kAdmins.
  virtual std::span<const rpc::MethodCallers> Callers() const { return {}; }
  virtual std::span<const rpc::MethodCallers> AdminCallers() const { return {}; }
  // Opens storage, connects to other services, starts listening. The loops are running.
  virtual Result<void> Start() = 0;
  // Whether the module can serve now (/readyz). Thread-safe.
  virtual bool Ready() const = 0;
  // Accepts no new work and waits for running work, at most until the deadline (monotonic µs).
  virtual void Drain(int64_t deadline_us) {}
  // Releases everything. No callback of this module runs afterwards.
  virtual void Stop() {}
};

}  // namespace tollgate
