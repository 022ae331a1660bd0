// Direct calls between the modules of one process, without gRPC (docs/adr/0006): the same requests
// and replies, passed as objects. A module sets its functions in its constructor; the client
// factory uses them for empty targets. The interfaces of the clients are the same either way.
#pragma once

#include <functional>
#include <memory>

#include "common/clients/clients.h"
#include "common/rpc/direct_call.h"

namespace tollgate {

struct DirectServices {
  rpc::DirectCall<ratelimit::v1::AcquireRequest, ratelimit::v1::AcquireResponse> acquire;
  rpc::DirectCall<ratelimit::v1::ReleaseRequest, ratelimit::v1::ReleaseResponse> release;
  rpc::DirectCall<ratelimit::v1::PeekRequest, ratelimit::v1::PeekResponse> peek;
  rpc::DirectCall<ratelimit::v1::GetUseRequest, ratelimit::v1::GetUseResponse> limit_use;
  rpc::DirectCall<billing::v1::AuthorizeRequest, billing::v1::AuthorizeResponse> authorize;
  rpc::DirectCall<billing::v1::VoidRequest, billing::v1::VoidResponse> void_holds;
  rpc::DirectCall<billing::v1::MeterRequest, billing::v1::MeterResponse> meter;
  rpc::DirectCall<billing::v1::TakeLeaseRequest, billing::v1::TakeLeaseResponse> take_lease;
  // Runs the request on the given loop, which is the caller's. Its events do not change threads.
  std::function<std::unique_ptr<Generation>(Loop&, inference::v1::GenerateRequest)> generate;
  // Runs on the current loop.
  std::function<Task<Result<inference::v1::CountTokensResponse>>(inference::v1::CountTokensRequest)>
      count_tokens;
};

}  // namespace tollgate
