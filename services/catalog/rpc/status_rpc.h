// CatalogStatusService of tollgate.admin.v1: the catalog as this replica has it, the problems of a
// refused file, and the capacity of models.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "services/catalog/rpc/catalog_publisher.h"
#include "tollgate/admin/v1/catalog_status.grpc.pb.h"

namespace tollgate::catalog {

class StatusRpc : public admin::v1::CatalogStatusService::CallbackService {
 public:
  // publisher and clock must outlive the service.
  StatusRpc(CatalogPublisher& publisher, const Clock& clock)
      : publisher_(publisher), clock_(clock) {}

  // Call after a file was loaded and published, also when it replaces a refused one. Thread-safe,
  // like Refused.
  void Loaded(bool anew);
  void Refused(const std::vector<std::string>& problems);

  grpc::ServerUnaryReactor* GetCatalogStatus(grpc::CallbackServerContext* context,
                                             const admin::v1::GetCatalogStatusRequest* request,
                                             admin::v1::CatalogStatus* response) override;
  grpc::ServerUnaryReactor* ListModelCapacity(
      grpc::CallbackServerContext* context, const admin::v1::ListModelCapacityRequest* request,
      admin::v1::ListModelCapacityResponse* response) override;

 private:
  CatalogPublisher& publisher_;
  const Clock& clock_;
  std::mutex mutex_;
  int64_t load_us_ = 0;
  std::vector<std::string> problems_;
  int64_t refuse_us_ = 0;
};

}  // namespace tollgate::catalog
