// CatalogService: serves the publisher's snapshots. Only inference routers get the API keys of
// engines. Routers are identified by their certificate; a caller without one must ask for the keys.
#pragma once

#include "services/catalog/rpc/catalog_publisher.h"

namespace tollgate::catalog {

class CatalogRpc : public v1::CatalogService::CallbackService {
 public:
  explicit CatalogRpc(CatalogPublisher& publisher) : publisher_(publisher) {}

  grpc::ServerWriteReactor<v1::WatchCatalogResponse>* WatchCatalog(
      grpc::CallbackServerContext* context, const v1::WatchCatalogRequest* request) override;
  grpc::ServerUnaryReactor* GetCatalog(grpc::CallbackServerContext* context,
                                       const v1::GetCatalogRequest* request,
                                       v1::GetCatalogResponse* response) override;

 private:
  CatalogPublisher& publisher_;
};

}  // namespace tollgate::catalog
