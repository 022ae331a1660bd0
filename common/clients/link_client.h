// The gateway's half of the shared token stream: one long-lived Link per router target and loop,
// which carries the events of all requests that run between the two (performance.md, point 2).
#pragma once

#include <memory>
#include <vector>

#include "common/clients/clients.h"
#include "common/runtime/loop.h"

namespace grpc {
class Channel;
}

namespace tollgate {

// One channel per router target. Links connect at once and reconnect by themselves. Made and
// destroyed on any thread, but destroyed only when no Generation of it is left.
std::unique_ptr<InferenceClient> MakeLinkClient(
    Loop& loop, std::vector<std::shared_ptr<grpc::Channel>> routers);

// What a router's End says in `internal` when it has not taken a request at all: nothing will be
// settled, so for the gateway the request counts as not sent. In a frame of stream 0 it tells that
// the router is stopping: no more requests, please.
inline constexpr char kLinkRefusal[] = "the inference router is stopping";

// Bytes of events that a router may send ahead of its receiver, per request. Both halves start with
// it.
inline constexpr int64_t kLinkWindowBytes = 256 * 1024;

}  // namespace tollgate
