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
  // Addresses and names of routers. Each address of a name counts as a router of its own, with its
  // own link and health. Names are resolved again every second. Requests on a link whose address
  // was removed continue there.
  std::vector<std::string> targets;
  // Creates the replica for an address; only this client uses it.
  std::function<std::shared_ptr<rpc::Replica>(const std::string& address)> make;
  // Shared by the process. Null: gRPC resolves names.
  std::shared_ptr<rpc::Resolver> resolver;
};

// Links connect at once and reconnect automatically. A link is replaced when its router calls it
// old. May be created and destroyed on any thread, but must outlive its Generations.
std::unique_ptr<InferenceClient> MakeLinkClient(Loop& loop, RouterTargets routers);
std::unique_ptr<InferenceClient> MakeLinkClient(
    Loop& loop, std::vector<std::shared_ptr<grpc::Channel>> routers);

}  // namespace tollgate
