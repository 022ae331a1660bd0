// Serves one method of tollgate.admin.v1: admits the caller, runs the handler where it may block,
// and ends the call with its result.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <memory>
#include <type_traits>
#include <utility>

#include "common/admin/access.h"
#include "common/admin/requests.h"
#include "common/base/try.h"
#include "common/error/error.h"

namespace tollgate::admin {

// Logs what callers must not see.
grpc::Status StatusOf(const AdminResult<void>& result);

// A call that has not ended. Copies are the same call.
class Call {
 public:
  // caller: null for a service that identifies its callers itself.
  explicit Call(grpc::ServerUnaryReactor* reactor, std::shared_ptr<const Caller> caller = nullptr)
      : reactor_(reactor), caller_(std::move(caller)) {}

  const Caller& caller() const { return *caller_; }

  // Ends the call; call it once, on any thread. Context, request and response are invalid
  // afterwards. Records a missing right in the audit log.
  void Finish(const AdminResult<void>& result) const;
  void Refuse(const Error& error) const { Finish(Fail{FromError(error)}); }

 private:
  grpc::ServerUnaryReactor* reactor_;
  std::shared_ptr<const Caller> caller_;
};

// Admits the caller and runs start(call), which ends the call, now or later.
template <typename StartFn>
grpc::ServerUnaryReactor* Start(grpc::CallbackServerContext* context,
                                const google::protobuf::Message* request, StartFn start) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  auto caller = Admit(*context, *request);
  if (caller) {
    start(Call(reactor, std::make_shared<const Caller>(*std::move(caller))));
  } else {
    Call(reactor).Finish(Fail{caller.error()});
  }
  return reactor;
}

// Calls fn(given, caller), or fn(given, caller, name) with the parts of the request's resource
// name. fn returns the response, or fills it and returns AdminResult<void>.
template <typename Given, typename Response, typename Fn>
AdminResult<void> Answer(const Call& call, const google::protobuf::Message& request,
                         Response* response, Given& given, const Fn& fn) {
  const auto answer = [&](const auto&... name) -> AdminResult<void> {
    if constexpr (std::is_same_v<decltype(fn(given, call.caller(), name...)), AdminResult<void>>) {
      return fn(given, call.caller(), name...);
    } else {
      TRY(*response, fn(given, call.caller(), name...));
      return {};
    }
  };
  if constexpr (std::is_invocable_v<const Fn&, Given&, const Caller&, const Parts&>) {
    TRY(auto name, NameParts(request));
    return answer(name);
  } else {
    return answer();
  }
}

// Serves the call with fn (see Answer) on the threads of the executor, which has
//   using Given = what fn gets besides the caller;
//   void Run(context, call, work): runs work(given) and ends the call with its result, or refuses.
template <typename Executor, typename Response, typename Fn>
grpc::ServerUnaryReactor* Handle(grpc::CallbackServerContext* context,
                                 const google::protobuf::Message* request, Response* response,
                                 const Executor& executor, Fn fn) {
  return Start(context, request, [&](const Call& call) {
    executor.Run(context, call,
                 [call, request, response, fn = std::move(fn)](typename Executor::Given& given) {
                   return Answer(call, *request, response, given, fn);
                 });
  });
}

}  // namespace tollgate::admin
