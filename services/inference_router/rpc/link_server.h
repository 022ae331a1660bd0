// The server half of InferenceService: runs the requests of Link, Generate and direct calls with a
// handler, as coroutines on a loop. The events of all requests of a link are batched into one
// message per turn.
#pragma once

#include <functional>
#include <memory>

#include "common/error/error.h"
#include "common/rpc/channel.h"
#include "common/rpc/link_protocol.h"
#include "common/runtime/loop.h"
#include "common/runtime/task.h"
#include "services/inference_router/rpc/event_sink.h"
#include "services/inference_router/rpc/incoming_bodies.h"
#include "tollgate/inference/v1/inference.pb.h"

namespace grpc {
class Service;
}

namespace tollgate {
class Generation;
}

namespace tollgate::inference_router {

// Runs on a loop.
using CountHandler = std::function<Task<Result<inference::v1::CountTokensResponse>>(
    inference::v1::CountTokensRequest)>;

class LinkServer {
 public:
  // Assigns each new link and each other call to the next loop of the pool. Without a count
  // handler, CountTokens is unimplemented. After max_link_age_ms (±10 %), a link asks its gateway
  // to move to a new one.
  static std::unique_ptr<LinkServer> Make(
      LoopPool& loops, GenerateHandler handler, CountHandler count = {},
      BodyLimits limits = {.max_body_bytes = kDefaultRouterBodyBytes},
      int64_t max_link_age_ms = rpc::kMaxConnectionAgeMs);
  virtual ~LinkServer() = default;
  // The gRPC service to register.
  virtual grpc::Service* service() = 0;
  // Runs a request on the caller's loop without gRPC, for a gateway in the same process. The same
  // limits apply.
  virtual std::unique_ptr<Generation> StartDirect(Loop& loop,
                                                  inference::v1::GenerateRequest request) = 0;
  // Refuses new requests with kServiceUnavailable; running requests continue.
  virtual void Drain() = 0;
  // Number of running requests.
  virtual int running() const = 0;
  // Whether gRPC has written all events of the links, so that the last requests have reached, or
  // have nearly reached, their gateways.
  virtual bool all_sent() const = 0;
};

}  // namespace tollgate::inference_router
