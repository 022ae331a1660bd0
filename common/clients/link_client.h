// Client of the shared token stream: one long-lived Link per router and loop carries the
// events of all requests between the two (docs/design/performance.md, point 2).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/clients/clients.h"
#include "common/runtime/loop.h"

namespace grpc {
class Channel;
}
namespace tollgate::rpc {
class Replica;
class Resolver;
}  // namespace tollgate::rpc

namespace tollgate {

// Where the routers are.
struct RouterTargets {
  // Addresses and names of routers. Each address that a name has is a router of its own, with a
  // link and a health of its own; names are looked up again every second. What runs on a link whose
  // address is gone goes on there.
  std::vector<std::string> targets;
  // A router that nothing else uses.
  std::function<std::shared_ptr<rpc::Replica>(const std::string& address)> make;
  // Shared by the process; null: names are left to gRPC.
  std::shared_ptr<rpc::Resolver> resolver;
};

// Links connect at once and reconnect automatically; one that its router calls old is replaced by
// another one. May be created and destroyed on any thread, but must outlive its Generations.
std::unique_ptr<InferenceClient> MakeLinkClient(Loop& loop, RouterTargets routers);
std::unique_ptr<InferenceClient> MakeLinkClient(
    Loop& loop, std::vector<std::shared_ptr<grpc::Channel>> routers);

}  // namespace tollgate
