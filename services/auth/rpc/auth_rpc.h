// AuthService: key lookups and the change stream for gateways. Handlers submit work to the storage
// threads, except for answers from memory.
#pragma once

#include <atomic>
#include <memory>

#include "services/auth/rpc/auth_backend.h"

namespace prometheus {
class Counter;
class Histogram;
}  // namespace prometheus

namespace tollgate::auth {

class AuthRpc : public v1::AuthService::CallbackService {
 public:
  explicit AuthRpc(const BackendSlot& backend);

  grpc::ServerUnaryReactor* VerifyKey(grpc::CallbackServerContext* context,
                                      const v1::VerifyKeyRequest* request,
                                      v1::VerifyKeyResponse* response) override;
  grpc::ServerWriteReactor<v1::WatchKeysResponse>* WatchKeys(
      grpc::CallbackServerContext* context, const v1::WatchKeysRequest* request) override;
  grpc::ServerUnaryReactor* ReadVersion(grpc::CallbackServerContext* context,
                                        const v1::ReadVersionRequest* request,
                                        v1::ReadVersionResponse* response) override;
  grpc::ServerUnaryReactor* ReportKeyUse(grpc::CallbackServerContext* context,
                                         const v1::ReportKeyUseRequest* request,
                                         v1::ReportKeyUseResponse* response) override;

 private:
  const BackendSlot& backend_;
  prometheus::Counter& found_;
  prometheus::Counter& unknown_;
  prometheus::Counter& failed_;
  prometheus::Histogram& seconds_;
  prometheus::Counter& version_reads_;
};

}  // namespace tollgate::auth
