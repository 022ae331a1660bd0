#include "services/catalog/rpc/catalog_rpc.h"

#include "common/rpc/peer.h"
#include "common/rpc/server.h"

namespace tollgate::catalog {

grpc::ServerWriteReactor<v1::WatchCatalogResponse>* CatalogRpc::WatchCatalog(
    grpc::CallbackServerContext* context, const v1::WatchCatalogRequest* request) {
  const rpc::Peer peer = rpc::PeerOf(*context);
  const bool is_router = peer.kind == rpc::PeerKind::kService && peer.name == "inference-router";
  const bool has_certificate =
      peer.kind == rpc::PeerKind::kService || peer.kind == rpc::PeerKind::kOperator;
  return publisher_.Watch(is_router || (!has_certificate && request->with_engine_keys()));
}

grpc::ServerUnaryReactor* CatalogRpc::GetCatalog(grpc::CallbackServerContext* context,
                                                 const v1::GetCatalogRequest* request,
                                                 v1::GetCatalogResponse* response) {
  const auto current = publisher_.current();
  if (!current) return rpc::Answer(context, Unavailable("the catalog is starting"));
  *response->mutable_snapshot() = current->snapshot();
  return rpc::Answer(context, {});
}

}  // namespace tollgate::catalog
