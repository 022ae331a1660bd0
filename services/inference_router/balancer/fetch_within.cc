#include "services/inference_router/balancer/fetch_within.h"

#include <memory>

#include "common/base/try.h"

namespace tollgate::inference_router {
namespace {

// Shared with the timer, which may outlive the call when the loop stops.
struct Bounded {
  explicit Bounded(http::Client& client) : call(client) {}
  http::ClientCall call;
  bool over = false;
};

Task<http::ClientResult<http::WholeResponse>> Fetch(std::shared_ptr<Bounded> bounded,
                                                    http::ClientRequest request,
                                                    size_t max_body_bytes) {
  CO_TRY(auto head, co_await bounded->call.Send(std::move(request)));
  CO_TRY(auto body, co_await bounded->call.ReadAll(max_body_bytes));
  co_return http::WholeResponse{std::move(head), std::move(body)};
}

}  // namespace

Task<http::ClientResult<http::WholeResponse>> FetchWithin(Loop& loop, http::Client& client,
                                                          http::ClientRequest request,
                                                          size_t max_body_bytes, int64_t total_ms) {
  const auto bounded = std::make_shared<Bounded>(client);
  const Loop::TimerId timer = loop.RunAfter(total_ms, [weak = std::weak_ptr<Bounded>(bounded)] {
    const auto running = weak.lock();
    if (!running) return;
    running->over = true;
    running->call.Abort();
  });
  auto answer = co_await Fetch(bounded, std::move(request), max_body_bytes);
  loop.CancelTimer(timer);
  if (!answer.ok() && bounded->over) {
    co_return Fail{http::ClientError{http::ClientError::Kind::kTimeout, "the call took too long",
                                     answer.error().response_started}};
  }
  co_return answer;
}

}  // namespace tollgate::inference_router
