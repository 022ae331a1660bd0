// Calls between the modules of one process, without gRPC (docs/adr/0006).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "common/error/error.h"
#include "common/runtime/notify.h"

namespace tollgate::rpc {

// May be called on any thread and must not block. `done` is called once, on any thread, possibly
// before the call returns.
template <typename Request, typename Response>
using DirectCall = std::function<void(Request, std::function<void(Result<Response>)> done)>;

// Makes the call awaitable on the given loop.
template <typename Request, typename Response>
Task<Result<Response>> CallDirect(Loop& loop, DirectCall<Request, Response> call, Request request) {
  struct Pending {
    explicit Pending(Loop& loop) : outside(loop) {}
    std::optional<Result<Response>> result;
    Waiter* waiter = nullptr;  // used on the loop only; null after the coroutine ends
    OutsideWork outside;
  };
  auto pending = std::make_shared<Pending>(loop);
  Waiter waiter(loop);
  struct Guard {
    Pending& pending;
    ~Guard() { pending.waiter = nullptr; }
  } guard{*pending};
  pending->waiter = &waiter;
  std::function<void(Result<Response>)> done = [pending, &loop](Result<Response> result) {
    if (Loop::Current() == &loop && pending->waiter != nullptr && !pending->waiter->suspended()) {
      pending->result.emplace(std::move(result));  // answered before the call returned
      return;
    }
    loop.Post([pending, result = std::move(result)]() mutable {
      pending->result.emplace(std::move(result));
      if (pending->waiter != nullptr) pending->waiter->ResumeNow(true);
    });
  };
  call(std::move(request), std::move(done));
  if (!pending->result) co_await waiter.Suspend();
  if (!pending->result) {
    co_return FailWith(ErrorId::kServiceUnavailable, "", "the call was cancelled");
  }
  co_return std::move(*pending->result);
}

}  // namespace tollgate::rpc
