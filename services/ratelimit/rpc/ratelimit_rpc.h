// RateLimitService over a store. Handlers never block. With Redis, a call ends on the client's
// thread.
#pragma once

#include <functional>
#include <memory>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/rpc/call_stream_server.h"
#include "services/ratelimit/rpc/caller_count.h"
#include "services/ratelimit/storage/limiter_store.h"
#include "tollgate/ratelimit/v1/ratelimit.grpc.pb.h"

namespace prometheus {
class Counter;
}

namespace tollgate::ratelimit {

class RateLimitRpc : public v1::RateLimitService::CallbackService {
 public:
  explicit RateLimitRpc(LimiterStore& store, const Clock& clock = SystemClock::Get());

  grpc::ServerUnaryReactor* Acquire(grpc::CallbackServerContext* context,
                                    const v1::AcquireRequest* request,
                                    v1::AcquireResponse* response) override;
  grpc::ServerBidiReactor<v1::AcquireCallsRequest, v1::AcquireCallsResponse>* AcquireCalls(
      grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* Release(grpc::CallbackServerContext* context,
                                    const v1::ReleaseRequest* request,
                                    v1::ReleaseResponse* response) override;
  grpc::ServerBidiReactor<v1::ReleaseCallsRequest, v1::ReleaseCallsResponse>* ReleaseCalls(
      grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* Renew(grpc::CallbackServerContext* context,
                                  const v1::RenewRequest* request,
                                  v1::RenewResponse* response) override;
  grpc::ServerUnaryReactor* Peek(grpc::CallbackServerContext* context,
                                 const v1::PeekRequest* request,
                                 v1::PeekResponse* response) override;
  grpc::ServerUnaryReactor* GetUse(grpc::CallbackServerContext* context,
                                   const v1::GetUseRequest* request,
                                   v1::GetUseResponse* response) override;

  // Ends the streams of calls; clients continue with another replica.
  void CloseStreams();

  // The calls without a gRPC context, also used for direct calls within one process. The response
  // must stay valid until done, which runs once, on any thread.
  using Done = std::function<void(grpc::Status)>;
  void DoAcquire(const v1::AcquireRequest& request, v1::AcquireResponse& response, Done done);
  void DoRelease(const v1::ReleaseRequest& request, Done done);
  void DoRenew(const v1::RenewRequest& request, v1::RenewResponse& response, Done done);
  void DoPeek(const v1::PeekRequest& request, v1::PeekResponse& response, Done done);
  void DoGetUse(const v1::GetUseRequest& request, v1::GetUseResponse& response, Done done);

 private:
  struct Admission;
  void Admit(const v1::AcquireItem& item, v1::AcquireResult& result,
             std::function<void(const StoreError*)> done);
  void Report(const BasicResult<AcquireOutcome, StoreError>& outcome, v1::AcquireResult& result);

  LimiterStore& store_;
  const Clock& clock_;
  CallerCount gateways_;
  prometheus::Counter* acquired_[4];  // by Kind
  prometheus::Counter* shadow_[4];
  prometheus::Counter& settled_;
  prometheus::Counter& refunded_;
  prometheus::Counter& unknown_;
  prometheus::Counter& restored_;
  rpc::CallStreams<v1::AcquireCallsRequest, v1::AcquireCallsResponse> acquires_;
  rpc::CallStreams<v1::ReleaseCallsRequest, v1::ReleaseCallsResponse> releases_;
};

}  // namespace tollgate::ratelimit
