// Runs the calls of tollgate.admin.v1 in auth: checks the caller, chooses the thread and wakes the
// watchers.
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

// Admits the caller, runs call(backend, caller) on a storage thread and ends the call with its
// result.
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

// As RunAdmin, for a call that changes something: counts it, and after a success wakes the feed.
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
