// How the admin services of the catalog answer: from the latest snapshot.
#pragma once

#include <grpcpp/support/server_callback.h>

#include "common/admin/access.h"
#include "common/admin/failure.h"
#include "services/catalog/rpc/catalog_publisher.h"

namespace tollgate::catalog {

// Answers immediately, because the snapshot is in memory.
template <typename Request, typename Response, typename Call>
grpc::ServerUnaryReactor* Answer(const CatalogPublisher& publisher,
                                 grpc::CallbackServerContext* context, const Request& request,
                                 Response* response, Call call) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  const auto caller = admin::Admit(*context, request);
  if (!caller) {
    reactor->Finish(admin::ToStatus(caller.error()));
    return reactor;
  }
  const auto current = publisher.current();
  admin::AdminResult<Response> result =
      Fail{admin::FromError(Unavailable("the catalog is starting").error)};
  if (current) result = call(*caller, current->snapshot());
  if (result) *response = *result;
  reactor->Finish(admin::ToStatus(result));
  return reactor;
}

}  // namespace tollgate::catalog
