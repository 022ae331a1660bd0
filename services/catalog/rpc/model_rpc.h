// ModelService of tollgate.admin.v1: the models that the caller may see, from the latest snapshot.
#pragma once

#include "services/catalog/rpc/catalog_publisher.h"
#include "tollgate/admin/v1/models.grpc.pb.h"

namespace tollgate::catalog {

class ModelRpc : public admin::v1::ModelService::CallbackService {
 public:
  explicit ModelRpc(CatalogPublisher& publisher) : publisher_(publisher) {}

  grpc::ServerUnaryReactor* GetModel(grpc::CallbackServerContext* context,
                                     const admin::v1::GetModelRequest* request,
                                     admin::v1::Model* response) override;
  grpc::ServerUnaryReactor* ListModels(grpc::CallbackServerContext* context,
                                       const admin::v1::ListModelsRequest* request,
                                       admin::v1::ListModelsResponse* response) override;

 private:
  CatalogPublisher& publisher_;
};

}  // namespace tollgate::catalog
