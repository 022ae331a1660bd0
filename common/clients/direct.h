// Direct calls between the modules of one process, without gRPC (docs/adr/0006): the same requests
// and replies, passed as objects. A module sets its functions in its constructor; the client
// factory uses them for empty targets. The interfaces of the clients are the same either way.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "common/clients/clients.h"
#include "common/runtime/notify.h"

namespace tollgate {

// May be called on any thread and must not block. `done` is called once, on any thread, possibly
// before the call returns.
template <typename Request, typename Response>
using DirectCall = std::function<void(Request, std::function<void(Result<Response>)> done)>;

struct DirectServices {
  DirectCall<ratelimit::v1::AcquireRequest, ratelimit::v1::AcquireResponse> acquire;
  DirectCall<ratelimit::v1::ReleaseRequest, ratelimit::v1::ReleaseResponse> release;
  DirectCall<ratelimit::v1::PeekRequest, ratelimit::v1::PeekResponse> peek;
  DirectCall<ratelimit::v1::GetUseRequest, ratelimit::v1::GetUseResponse> limit_use;
  DirectCall<billing::v1::AuthorizeRequest, billing::v1::AuthorizeResponse> authorize;
  DirectCall<billing::v1::VoidRequest, billing::v1::VoidResponse> void_holds;
  DirectCall<billing::v1::MeterRequest, billing::v1::MeterResponse> meter;
  DirectCall<billing::v1::TakeLeaseRequest, billing::v1::TakeLeaseResponse> take_lease;
  // Runs the request on the given loop, which is the caller's. Its events do not change threads.
  std::function<std::unique_ptr<Generation>(Loop&, inference::v1::GenerateRequest)> generate;
  // Runs on the current loop.
  std::function<Task<Result<inference::v1::CountTokensResponse>>(inference::v1::CountTokensRequest)>
      count_tokens;
};

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

}  // namespace tollgate
