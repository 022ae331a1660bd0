// Serves the calls of tollgate.admin.v1 with the classes of services/auth/admin.
#pragma once

#include "common/admin/on_pool.h"
#include "services/auth/rpc/auth_backend.h"

namespace tollgate::auth {

using OnBackend = admin::OnPool<AuthBackend>;

// Serves a call that reads with Admin(store).*method.
template <typename Request, typename Response, typename Admin>
grpc::ServerUnaryReactor* Read(const BackendSlot& slot, grpc::CallbackServerContext* context,
                               const Request* request, Response* response,
                               admin::AdminResult<Response> (Admin::*method)(const Request&)) {
  return admin::Handle(context, request, response, OnBackend{slot},
                       [=](AuthBackend& backend, const admin::Caller&) {
                         return (Admin(backend.store()).*method)(*request);
                       });
}
template <typename Request, typename Response, typename Admin>
grpc::ServerUnaryReactor* Read(const BackendSlot& slot, grpc::CallbackServerContext* context,
                               const Request* request, Response* response,
                               admin::AdminResult<Response> (Admin::*method)(const admin::Caller&,
                                                                             const Request&)) {
  return admin::Handle(context, request, response, OnBackend{slot},
                       [=](AuthBackend& backend, const admin::Caller& caller) {
                         return (Admin(backend.store()).*method)(caller, *request);
                       });
}

// Counts a change of this kind, and wakes the watchers if it was made.
inline void AfterChange(AuthBackend& backend, const char* kind, bool made) {
  CountChange(kind, made);
  if (made) backend.feed().Wake();
}

// Serves a call that changes something with Admin(store).*method.
template <typename Request, typename Response, typename Admin>
grpc::ServerUnaryReactor* Change(const BackendSlot& slot, grpc::CallbackServerContext* context,
                                 const Request* request, Response* response, const char* kind,
                                 admin::AdminResult<Response> (Admin::*method)(const admin::Caller&,
                                                                               const Request&)) {
  return admin::Handle(context, request, response, OnBackend{slot},
                       [=](AuthBackend& backend, const admin::Caller& caller) {
                         auto result = (Admin(backend.store()).*method)(caller, *request);
                         AfterChange(backend, kind, result.ok());
                         return result;
                       });
}

}  // namespace tollgate::auth
