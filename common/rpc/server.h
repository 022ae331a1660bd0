// Server side: gRPC callback handlers that never block gRPC's few threads. A handler hops to a loop
// (as a coroutine) or to a worker thread (as a blocking function) and the call is answered from
// there.
//
//   class AuthRpc : public auth::v1::AuthService::CallbackService {
//     grpc::ServerUnaryReactor* VerifyKey(grpc::CallbackServerContext* context,
//                                         const VerifyKeyRequest* request,
//                                         VerifyKeyResponse* response) override {
//       // A blocking function on a worker thread; request and response live until the answer.
//       return rpc::ServeBlocking(context, workers_, [=, this]() -> Result<void> {
//         return store_.Verify(*request, *response);
//       });
//       // Or a coroutine on a loop. The lambda is kept until its coroutine has ended.
//       return rpc::ServeOnLoop(context, loops_.Next(), [=, this]() -> Task<Result<void>> {
//         co_return co_await Verify(*request, *response);
//       });
//       // Or at once, when it is quick and takes no lock for long.
//       return rpc::Answer(context, Verify(*request, *response));
//     }
//   };
//
// Streams that push changes to subscribers: push_hub.h.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/error/error.h"
#include "common/rpc/error_status.h"
#include "common/runtime/loop.h"
#include "common/runtime/task.h"

namespace tollgate::rpc {

inline grpc::Status ToStatus(const Result<void>& result) {
  return result.ok() ? grpc::Status::OK : ToStatus(result.error());
}

// Answers now.
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

// Answers with what the coroutine make() returns; it runs on the loop.
template <typename Make>
grpc::ServerUnaryReactor* ServeOnLoop(grpc::CallbackServerContext* context, Loop& loop, Make make) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  loop.Spawn(internal::ServeTask(reactor, std::move(make)));
  return reactor;
}

// A few threads for what blocks. The queue is bounded: what does not fit is refused, not delayed.
class WorkerPool {
 public:
  WorkerPool(int threads, size_t max_queued, const char* name);
  ~WorkerPool();  // Stop
  // False when the queue is full or the pool has stopped.
  bool Submit(std::function<void()> work);
  // Runs what is queued, then joins.
  void Stop();

 private:
  void Run();

  const size_t max_queued_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> queue_;
  bool stopped_ = false;
  std::vector<std::thread> threads_;
};

// Answers with what the blocking function returns; it runs on a worker.
template <typename Function>
grpc::ServerUnaryReactor* ServeBlocking(grpc::CallbackServerContext* context, WorkerPool& workers,
                                        Function function) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  bool queued = workers.Submit([reactor, function = std::move(function)]() mutable {
    reactor->Finish(ToStatus(function()));
  });
  if (!queued) reactor->Finish(ToStatus(Unavailable("the worker queue is full").error));
  return reactor;
}

}  // namespace tollgate::rpc
