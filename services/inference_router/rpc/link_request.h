// The parts that all transports of a request (Link, Generate, direct call) share: the handler with
// its counters, and the sink with its window.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "common/clients/clients.h"
#include "common/error/error.h"
#include "common/rpc/link_protocol.h"
#include "common/runtime/notify.h"
#include "services/inference_router/rpc/incoming_bodies.h"
#include "services/inference_router/rpc/link_server.h"

namespace tollgate::inference_router {

// Creates the counters of refusals at the start, so that alerts see them grow from zero.
void MakeRefusalCounters();

// The handler, and the state that all requests share.
struct RequestCore {
  RequestCore(GenerateHandler handler, BodyLimits limits)
      : handler(std::move(handler)), bodies{.limits = limits} {
    MakeRefusalCounters();
  }
  GenerateHandler handler;
  BodyBudget bodies;
  std::atomic<bool> draining{false};
  std::atomic<int> running{0};
  // Links with events that gRPC has not written. These may include the ends of requests that no
  // longer run.
  std::atomic<int> unsent_links{0};
};

// The error for requests during a drain, and the reason why a request is refused, if it is.
Error DrainingError();
std::optional<Error> RefusalReason(const RequestCore& core,
                                   const inference::v1::GenerateRequest& request);
void CountRefusal(const Error& error);
// The End of a request that did not run.
inference::v1::Event RefusalOf(const Error& error);

// Enforces the window that the receiver granted and passes the events to the transport.
class RequestSink : public EventSink {
 public:
  // Queues the event of this many bytes. The sink has checked the window.
  using Emit = std::function<void(inference::v1::Event, int64_t bytes)>;

  // transport_full: whether the transport accepts no events at the moment; read until the sink is
  // cancelled. The transport calls Wake when it accepts events again.
  RequestSink(Loop& loop, Emit emit, const bool* transport_full = nullptr)
      : emit_(std::move(emit)), transport_full_(transport_full), window_opened_(loop) {}

  Task<bool> Send(inference::v1::Event event) override {
    // End needs no window: it releases the request even if the receiver never grants one again.
    if (!event.has_end()) {
      while (!cancelled_ && (window_bytes_ <= 0 || transport_full())) {
        co_await window_opened_.Wait();
      }
    }
    if (cancelled_) co_return false;
    const int64_t bytes = static_cast<int64_t>(event.ByteSizeLong());
    window_bytes_ -= bytes;
    emit_(std::move(event), bytes);
    co_return true;
  }
  bool cancelled() const override { return cancelled_; }
  bool receiver_lost() const override { return receiver_lost_; }
  void OnCancel(std::function<void()> callback) override {
    on_cancel_ = std::move(callback);
    if (cancelled_) RunCancelCallback();
  }

  void Grant(int64_t bytes) {
    window_bytes_ += bytes;
    window_opened_.NotifyAll();
  }
  void Wake() { window_opened_.NotifyAll(); }
  void Lose() {
    receiver_lost_ = !cancelled_;
    Cancel();
  }
  void Cancel() {
    if (cancelled_) return;
    cancelled_ = true;
    emit_ = nullptr;  // the transport may be destroyed after this
    window_opened_.NotifyAll();
    RunCancelCallback();
  }

 private:
  bool transport_full() const { return transport_full_ != nullptr && *transport_full_; }
  void RunCancelCallback() {
    auto callback = std::move(on_cancel_);
    on_cancel_ = nullptr;
    if (callback) callback();
  }

  Emit emit_;
  const bool* const transport_full_;
  Notify window_opened_;
  int64_t window_bytes_ = kLinkWindowBytes;
  bool cancelled_ = false;
  bool receiver_lost_ = false;
  std::function<void()> on_cancel_;
};

// Runs the handler to its end and keeps core and sink alive meanwhile. Calls `finished` on the
// loop.
inline Task<void> RunRequest(std::shared_ptr<RequestCore> core,
                             inference::v1::GenerateRequest request,
                             std::shared_ptr<RequestSink> sink, std::function<void()> finished) {
  ++core->running;
  co_await core->handler(std::move(request), sink);
  --core->running;
  finished();
}

// A request from the same loop, without gRPC (docs/adr/0006).
std::unique_ptr<Generation> StartDirectGeneration(const std::shared_ptr<RequestCore>& core,
                                                  Loop& loop,
                                                  inference::v1::GenerateRequest request);

}  // namespace tollgate::inference_router
