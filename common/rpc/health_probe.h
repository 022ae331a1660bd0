// Asks a server whether it serves, by the gRPC health checking protocol (grpc.health.v1).
#pragma once

#include <cstdint>
#include <memory>

#include "common/rpc/replica_health.h"
#include "common/runtime/loop.h"

namespace grpc {
class Channel;
}

namespace tollgate::rpc {

// A server without the protocol serves: it has answered. Never longer than the time-out.
Task<Liveness> ProbeHealth(Loop& loop, std::shared_ptr<grpc::Channel> channel, int64_t timeout_ms);

}  // namespace tollgate::rpc
