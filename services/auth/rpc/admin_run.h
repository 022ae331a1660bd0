// How the handlers of tollgate.admin.v1 in auth run a call: who may, on which thread, what follows.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <functional>
#include <utility>

#include "common/admin/access.h"
#include "common/admin/failure.h"
#include "common/observability/log.h"
#include "common/observability/metrics.h"
#include "services/auth/rpc/auth_backend.h"

namespace tollgate::auth {

inline grpc::Status FinishStatus(const admin::Failure& failure) {
  if (!failure.internal.empty()) {
    log::Warn("admin call failed", {{"reason", failure.reason}, {"error", failure.internal}});
  }
  return admin::ToStatus(failure);
}

inline grpc::ServerUnaryReactor* RefuseAdmin(grpc::CallbackServerContext* context,
                                             const admin::Failure& failure) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(FinishStatus(failure));
  return reactor;
}

// Ends the call with what call(backend, caller) returns, on a storage thread.
template <typename Request, typename Response, typename Call>
grpc::ServerUnaryReactor* RunAdmin(const BackendSlot& slot, grpc::CallbackServerContext* context,
                                   const Request* request, Response* response, Call call) {
  auto caller = admin::Admit(*context, *request);
  if (!caller) return RefuseAdmin(context, caller.error());
  AuthBackend* const backend = slot.load();
  if (!backend) {
    return RefuseAdmin(context, admin::FromError(Unavailable("auth is not running").error));
  }
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  const bool posted = backend->workers().Submit(
      [backend, reactor, response, caller = *std::move(caller), call = std::move(call)] {
        admin::AdminResult<Response> result = call(*backend, caller);
        if (!result) {
          admin::NoteRefusal(caller, result.error());
          return reactor->Finish(FinishStatus(result.error()));
        }
        *response = *std::move(result);
        reactor->Finish(grpc::Status::OK);
      });
  if (!posted) {
    reactor->Finish(FinishStatus(admin::FromError(Unavailable("too many calls are queued").error)));
  }
  return reactor;
}

// The same for a call that changes something: counted, and a success is sent to the watchers at
// once.
template <typename Request, typename Response, typename Call>
grpc::ServerUnaryReactor* ChangeAdmin(const BackendSlot& slot, grpc::CallbackServerContext* context,
                                      const Request* request, Response* response, const char* kind,
                                      Call call) {
  return RunAdmin(
      slot, context, request, response,
      [kind, call = std::move(call)](AuthBackend& backend, const admin::Caller& caller) {
        admin::AdminResult<Response> result = call(backend, caller);
        CountChange(kind, result.ok());
        if (result) backend.feed().Wake();
        return result;
      });
}

}  // namespace tollgate::auth
