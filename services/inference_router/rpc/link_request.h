// A running request on the router's side, whatever carries it: what all carriers share, and the
// sink that the handler writes to.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

#include "common/clients/clients.h"
#include "common/clients/link_client.h"
#include "common/error/error.h"
#include "common/rpc/link_protocol.h"
#include "common/runtime/notify.h"
#include "services/inference_router/rpc/link_server.h"

namespace tollgate {

// The handler, and what is known of its requests.
struct RequestCore {
  explicit RequestCore(GenerateHandler handler) : handler(std::move(handler)) {}
  GenerateHandler handler;
  std::atomic<bool> draining{false};
  std::atomic<int> running{0};
};

// One running request's way back. The transport (a link or a call) takes what it sends.
class RequestSink : public EventSink {
 public:
  // Queues the event; the sink has checked that there is room.
  using Emit = std::function<void(inference::v1::Event)>;

  RequestSink(Loop& loop, Emit emit) : emit_(std::move(emit)), room_(loop) {}

  Task<bool> Send(inference::v1::Event event) override {
    // The end must get out even to a receiver that has stopped granting: it frees the request.
    if (!event.has_end()) {
      while (credit_ <= 0 && !cancelled_) co_await room_.Wait();
    }
    if (cancelled_) co_return false;
    credit_ -= static_cast<int64_t>(event.ByteSizeLong());
    emit_(std::move(event));
    co_return true;
  }
  bool cancelled() const override { return cancelled_; }
  void OnCancel(std::function<void()> callback) override {
    on_cancel_ = std::move(callback);
    if (cancelled_) Tell();
  }

  void Grant(int64_t bytes) {
    credit_ += bytes;
    room_.NotifyAll();
  }
  void Cancel() {
    if (cancelled_) return;
    cancelled_ = true;
    emit_ = nullptr;  // the transport may be gone from here on
    room_.NotifyAll();
    Tell();
  }

 private:
  void Tell() {
    auto callback = std::move(on_cancel_);
    on_cancel_ = nullptr;
    if (callback) callback();
  }

  Emit emit_;
  Notify room_;
  int64_t credit_ = kLinkWindowBytes;
  bool cancelled_ = false;
  std::function<void()> on_cancel_;
};

// Runs the handler to its end and keeps what it needs alive meanwhile. finished is told on the
// loop.
inline Task<void> RunRequest(std::shared_ptr<RequestCore> core,
                             inference::v1::GenerateRequest request,
                             std::shared_ptr<RequestSink> sink, std::function<void()> finished) {
  ++core->running;
  co_await core->handler(std::move(request), sink);
  --core->running;
  finished();
}

// A request of the same loop, without any carrier (docs/adr/0006).
std::unique_ptr<Generation> StartDirectGeneration(const std::shared_ptr<RequestCore>& core,
                                                  Loop& loop,
                                                  inference::v1::GenerateRequest request);

}  // namespace tollgate
