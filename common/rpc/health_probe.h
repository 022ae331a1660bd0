// Probes a server by the gRPC health checking protocol (grpc.health.v1).
#pragma once

#include <cstdint>
#include <memory>

#include "common/rpc/replica_health.h"
#include "common/runtime/loop.h"

namespace grpc {
class Channel;
}

namespace tollgate::rpc {

// A server without the protocol counts as serving, since it has answered. Never takes longer than
// the timeout.
Task<Liveness> ProbeHealth(Loop& loop, std::shared_ptr<grpc::Channel> channel, int64_t timeout_ms);

}  // namespace tollgate::rpc
