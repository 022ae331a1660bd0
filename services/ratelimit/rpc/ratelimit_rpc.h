// RateLimitService over the store. Handlers run on gRPC's threads: each does a few hash lookups and
// never blocks on I/O.
#pragma once

#include "services/ratelimit/storage/limiter_store.h"
#include "tollgate/ratelimit/v1/ratelimit.grpc.pb.h"

namespace prometheus {
class Counter;
}

namespace tollgate::ratelimit {

class RateLimitRpc : public v1::RateLimitService::CallbackService {
 public:
  explicit RateLimitRpc(LimiterStore& store);

  grpc::ServerUnaryReactor* Acquire(grpc::CallbackServerContext* context,
                                    const v1::AcquireRequest* request,
                                    v1::AcquireResponse* response) override;
  grpc::ServerUnaryReactor* Release(grpc::CallbackServerContext* context,
                                    const v1::ReleaseRequest* request,
                                    v1::ReleaseResponse* response) override;
  grpc::ServerUnaryReactor* Renew(grpc::CallbackServerContext* context,
                                  const v1::RenewRequest* request,
                                  v1::RenewResponse* response) override;
  grpc::ServerUnaryReactor* Peek(grpc::CallbackServerContext* context,
                                 const v1::PeekRequest* request,
                                 v1::PeekResponse* response) override;

  // The calls without a gRPC context, also used directly within one process.
  grpc::Status DoAcquire(const v1::AcquireRequest& request, v1::AcquireResponse& response);
  grpc::Status DoRelease(const v1::ReleaseRequest& request);
  grpc::Status DoRenew(const v1::RenewRequest& request);
  grpc::Status DoPeek(const v1::PeekRequest& request, v1::PeekResponse& response);

 private:
  LimiterStore& store_;
  prometheus::Counter* acquired_[4];  // by Kind
  prometheus::Counter& settled_;
  prometheus::Counter& refunded_;
  prometheus::Counter& unknown_;
};

}  // namespace tollgate::ratelimit
