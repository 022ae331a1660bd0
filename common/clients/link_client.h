// Client of the shared token stream: one long-lived Link per router target and loop carries the
// events of all requests between the two (docs/design/performance.md, point 2).
#pragma once

#include <memory>
#include <vector>

#include "common/clients/clients.h"
#include "common/runtime/loop.h"

namespace grpc {
class Channel;
}
namespace tollgate::rpc {
class Replica;
}

namespace tollgate {

// One replica per router target. Links connect at once and reconnect automatically. May be created
// and destroyed on any thread, but must outlive its Generations.
std::unique_ptr<InferenceClient> MakeLinkClient(Loop& loop,
                                                std::vector<std::shared_ptr<rpc::Replica>> routers);
std::unique_ptr<InferenceClient> MakeLinkClient(
    Loop& loop, std::vector<std::shared_ptr<grpc::Channel>> routers);

}  // namespace tollgate
