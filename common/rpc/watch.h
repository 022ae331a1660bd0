// A server stream that is kept open (common/clients/subscription.h): 100 ms after it ends, a new
// one is opened, until the Watch is destroyed. gRPC's callbacks only post to the loop. The next
// message is read when the previous one has been handled, so a slow receiver applies back-pressure.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>

#include <functional>
#include <memory>
#include <utility>

#include "common/error/error.h"
#include "common/rpc/error_status.h"
#include "common/runtime/loop.h"

namespace tollgate::rpc {

template <typename Request, typename Message>
struct WatchOptions {
  // Starts a stream, for example:
  //   [stub](auto* context, auto* request, auto* reactor) { stub->async()->WatchKeys(context,
  //   request, reactor); }
  std::function<void(grpc::ClientContext*, const Request*, grpc::ClientReadReactor<Message>*)> open;
  // Returns the request of each new stream.
  std::function<Request()> make_request;
  // Both run on the loop.
  std::function<void(Message)> on_message;
  std::function<void(const Error&)> on_lost;
  // A stream without messages for this long is cancelled; 0: never. For streams with pings.
  int64_t silence_ms = 0;
};

// Lives on one loop and must be destroyed there. No callback runs afterwards.
template <typename Request, typename Message>
class Watch {
 public:
  using Options = WatchOptions<Request, Message>;
  static constexpr int64_t kReconnectMs = 100;

  Watch(Loop& loop, Options options) : core_(std::make_shared<Core>(loop, std::move(options))) {
    loop.Post([core = core_] { core->Open(); });
  }
  ~Watch() { core_->Stop(); }
  // Ends the running stream. It counts as lost, and a new one is opened.
  void Reopen() {
    if (core_->stream != nullptr) core_->stream->Cancel();
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  class Stream;

  struct Core : std::enable_shared_from_this<Core> {
    Core(Loop& loop, Options options) : loop(loop), options(std::move(options)) {}

    void Open() {
      if (stopped) return;
      timer = 0;
      stream = Stream::Start(this->shared_from_this());
      WatchSilence();
    }
    void Stop() {
      stopped = true;
      if (timer != 0) loop.CancelTimer(timer);
      if (silence_timer != 0) loop.CancelTimer(silence_timer);
      if (stream != nullptr) stream->Cancel();
    }
    // on_message may destroy the owner: do not use members afterwards.
    void OnMessage(Message message) {
      if (stopped) return;
      received = true;
      options.on_message(std::move(message));
    }
    void OnEnd(const grpc::Status& status) {
      stream = nullptr;
      if (stopped) return;
      if (silence_timer != 0) loop.CancelTimer(std::exchange(silence_timer, 0));
      timer = loop.RunAfter(kReconnectMs, [this] { Open(); });
      if (options.on_lost) options.on_lost(FromStatus(status));
    }
    void WatchSilence() {
      if (options.silence_ms <= 0) return;
      received = false;
      silence_timer = loop.RunAfter(options.silence_ms, [this] {
        silence_timer = 0;
        if (stream == nullptr) return;
        if (!received) return stream->Cancel();
        WatchSilence();
      });
    }

    Loop& loop;
    const Options options;
    Stream* stream = nullptr;
    Loop::TimerId timer = 0;
    Loop::TimerId silence_timer = 0;
    bool received = false;
    bool stopped = false;
  };

  // Owns itself until OnDone has been handled on the loop.
  class Stream : public grpc::ClientReadReactor<Message> {
   public:
    static Stream* Start(std::shared_ptr<Core> core) {
      auto stream = std::make_shared<Stream>(std::move(core));
      stream->self_ = stream;
      stream->core_->options.open(&stream->context_, &stream->request_, stream.get());
      // Reads are started from the loop, outside gRPC's callbacks, which requires a hold.
      stream->AddHold();
      stream->StartRead(&stream->message_);
      stream->StartCall();
      return stream.get();
    }
    explicit Stream(std::shared_ptr<Core> core)
        : core_(std::move(core)),
          outside_(std::make_unique<OutsideWork>(core_->loop)),
          request_(core_->options.make_request()) {}
    void Cancel() { context_.TryCancel(); }

    void OnReadDone(bool ok) override {
      if (!ok) return this->RemoveHold();
      core_->loop.Post([this] {
        Message message = std::move(message_);
        message_ = Message();
        core_->OnMessage(std::move(message));
        this->StartRead(&message_);
      });
    }
    void OnDone(const grpc::Status& status) override {
      auto outside = std::move(outside_);
      outside->loop().Post([self = std::move(self_), status] { self->core_->OnEnd(status); });
    }

   private:
    std::shared_ptr<Core> core_;
    std::shared_ptr<Stream> self_;
    std::unique_ptr<OutsideWork> outside_;
    grpc::ClientContext context_;
    Request request_;
    Message message_;
  };

  std::shared_ptr<Core> core_;
};

}  // namespace tollgate::rpc
