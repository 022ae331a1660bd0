#include "services/catalog/catalog_rpc.h"

namespace tollgate::catalog {

grpc::ServerWriteReactor<v1::WatchCatalogResponse>* CatalogRpc::WatchCatalog(
    grpc::CallbackServerContext* context, const v1::WatchCatalogRequest* request) {
  return publisher_.Watch().get();  // keeps itself alive
}

grpc::ServerUnaryReactor* CatalogRpc::GetCatalog(grpc::CallbackServerContext* context,
                                                 const v1::GetCatalogRequest* request,
                                                 v1::GetCatalogResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const auto current = publisher_.current();
  if (current) {
    *response->mutable_snapshot() = current->snapshot();
    reactor->Finish(grpc::Status::OK);
  } else {
    reactor->Finish(grpc::Status(grpc::StatusCode::UNAVAILABLE, "the catalog is starting"));
  }
  return reactor;
}

}  // namespace tollgate::catalog
