// Sends the same unary call to every replica of a service, concurrently.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "common/rpc/call.h"
#include "common/rpc/replica.h"
#include "common/runtime/notify.h"

namespace tollgate::dashboard {

// A replica and its answer.
template <typename Response>
struct Answered {
  std::shared_ptr<rpc::Replica> replica;
  Result<Response> answer = Unavailable("there is no answer");
};

template <typename Response>
struct AnswersOfAll {
  explicit AnswersOfAll(Loop& loop) : all_there(loop) {}
  std::vector<Answered<Response>> answers;
  size_t waiting = 0;
  Event all_there;
};

template <typename Service, typename Async, typename Request, typename Response>
Task<void> AskOne(Loop& loop, std::shared_ptr<AnswersOfAll<Response>> all, size_t index,
                  void (Async::*method)(grpc::ClientContext*, const Request*, Response*,
                                        std::function<void(grpc::Status)>),
                  Request request, int64_t timeout_ms) {
  const std::shared_ptr<rpc::Replica> replica = all->answers[index].replica;
  const auto stub = replica->template Stub<Service>();
  auto answer = co_await rpc::Unary(loop, stub->async(), method, std::move(request), timeout_ms);
  all->answers[index].answer = std::move(answer);
  if (--all->waiting == 0) all->all_there.Set();
}

// Call it on the loop of the replicas. Returns the answers in the order of the replicas; one that
// failed has an error.
template <typename Service, typename Async, typename Request, typename Response>
Task<std::vector<Answered<Response>>> AskAll(
    Loop& loop, std::vector<std::shared_ptr<rpc::Replica>> replicas,
    void (Async::*method)(grpc::ClientContext*, const Request*, Response*,
                          std::function<void(grpc::Status)>),
    std::type_identity_t<Request> request, int64_t timeout_ms) {
  const auto all = std::make_shared<AnswersOfAll<Response>>(loop);
  for (auto& replica : replicas) all->answers.push_back({.replica = std::move(replica)});
  all->waiting = all->answers.size();
  if (all->waiting > 0) {
    for (size_t i = 0; i < all->answers.size(); ++i) {
      loop.Spawn(AskOne<Service>(loop, all, i, method, request, timeout_ms));
    }
    co_await all->all_there.Wait();
  }
  co_return std::move(all->answers);
}

}  // namespace tollgate::dashboard
