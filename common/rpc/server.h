// Server side: gRPC callback handlers that do not block gRPC's few threads. A handler continues as
// a coroutine on a loop or as a blocking function on a pool thread, and completes the call from
// there.
//
//   class AuthRpc : public auth::v1::AuthService::CallbackService {
//     grpc::ServerUnaryReactor* VerifyKey(grpc::CallbackServerContext* context,
//                                         const VerifyKeyRequest* request,
//                                         VerifyKeyResponse* response) override {
//       // A blocking function on a pool thread. request and response live until it has returned.
//       return rpc::ServeBlocking(context, pool_, [=, this]() -> Result<void> {
//         return store_.Verify(*request, *response);
//       });
//       // Or a coroutine on a loop. The lambda lives until its coroutine has ended.
//       return rpc::ServeOnLoop(context, loops_.Next(), [=, this]() -> Task<Result<void>> {
//         co_return co_await Verify(*request, *response);
//       });
//       // Or at once, if it is fast and holds no lock for long.
//       return rpc::Answer(context, Verify(*request, *response));
//     }
//   };
//
// Streams that push changes to subscribers: push_hub.h.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <functional>
#include <utility>

#include "common/error/error.h"
#include "common/rpc/error_status.h"
#include "common/runtime/loop.h"
#include "common/runtime/task.h"
#include "common/runtime/thread_pool.h"

namespace tollgate::rpc {

inline grpc::Status ToStatus(const Result<void>& result) {
  return result.ok() ? grpc::Status::OK : ToStatus(result.error());
}

// Completes the call at once.
inline grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context,
                                        const Result<void>& result) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToStatus(result));
  return reactor;
}

namespace internal {
template <typename Make>
Task<void> ServeTask(grpc::ServerUnaryReactor* reactor, Make make) {
  Result<void> result = co_await make();
  reactor->Finish(ToStatus(result));
}
}  // namespace internal

// Completes the call with the result of the coroutine make(), which runs on the loop.
template <typename Make>
grpc::ServerUnaryReactor* ServeOnLoop(grpc::CallbackServerContext* context, Loop& loop, Make make) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  loop.Spawn(internal::ServeTask(reactor, std::move(make)));
  return reactor;
}

using tollgate::ThreadPool;

// Completes the call with the result of the blocking function, which runs on a thread of the pool.
template <typename Function>
grpc::ServerUnaryReactor* ServeBlocking(grpc::CallbackServerContext* context, ThreadPool& pool,
                                        Function function) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  bool queued = pool.Submit([reactor, function = std::move(function)]() mutable {
    reactor->Finish(ToStatus(function()));
  });
  if (!queued) reactor->Finish(ToStatus(Unavailable("the queue of the thread pool is full").error));
  return reactor;
}

}  // namespace tollgate::rpc
