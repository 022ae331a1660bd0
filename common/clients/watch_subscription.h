// A Subscription to a server stream of a service with several replicas. Internal to this folder.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "common/clients/make_clients.h"
#include "common/clients/subscription.h"
#include "common/rpc/replica_caller.h"
#include "common/rpc/watch.h"

namespace tollgate {

// A stream from any replica. If the replica is lost, the stream is reopened at another one.
template <typename Service, typename Request, typename Message>
class WatchSubscription : public Subscription {
 public:
  using Async = typename Service::StubInterface::async_interface;
  using Method = void (Async::*)(grpc::ClientContext*, const Request*,
                                 grpc::ClientReadReactor<Message>*);

  WatchSubscription(Loop& loop, ReplicasPtr replicas, Method method,
                    rpc::WatchOptions<Request, Message> options)
      : state_(std::make_shared<State>()),
        watch_(loop, Complete(state_, std::move(replicas), method, std::move(options))) {
    state_->watch = &watch_;
  }
  ~WatchSubscription() override {
    state_->watch = nullptr;
    state_->use.reset();
  }

 private:
  struct State {
    rpc::Watch<Request, Message>* watch = nullptr;  // null before and after its lifetime
    std::optional<rpc::Replica::Use> use;           // of the open stream
    std::shared_ptr<rpc::Replica> last;             // the replica of the last lost stream
  };

  static rpc::WatchOptions<Request, Message> Complete(std::shared_ptr<State> state,
                                                      ReplicasPtr replicas, Method method,
                                                      rpc::WatchOptions<Request, Message> options) {
    options.open = [state, replicas, method](grpc::ClientContext* context, const Request* request,
                                             grpc::ClientReadReactor<Message>* reactor) {
      const std::shared_ptr<rpc::Replica> replica = replicas->Pick(state->last.get());
      State* const raw = state.get();  // it owns the use
      state->use.emplace(
          replica,
          [raw] {
            if (raw->watch != nullptr) raw->watch->Reopen();
          },
          false);
      (replica->Stub<Service>()->async()->*method)(context, request, reactor);
    };
    options.on_lost = [state, on_lost = std::move(options.on_lost)](const Error& error) {
      if (state->use) {
        state->last = state->use->replica();
        if (!state->use->abandoned()) state->last->CallEnded(false);
        state->use.reset();
      }
      if (on_lost) on_lost(error);
    };
    return options;
  }

  std::shared_ptr<State> state_;
  rpc::Watch<Request, Message> watch_;
};

}  // namespace tollgate
