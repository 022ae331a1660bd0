#include "services/inference_router/rpc/link_server.h"

#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <deque>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "common/rpc/inbox.h"
#include "common/rpc/link_protocol.h"
#include "common/rpc/link_queue.h"
#include "common/rpc/server.h"
#include "services/inference_router/rpc/link_request.h"
#include "tollgate/inference/v1/inference.grpc.pb.h"

namespace tollgate::inference_router {
namespace {

using inference::v1::Event;
using inference::v1::GenerateRequest;
using inference::v1::GenerateResponse;
using inference::v1::InferenceService;
using inference::v1::LinkRequest;
using inference::v1::LinkResponse;
using inference::v1::LinkResponseFrame;

class LinkCall;
using Sink = RequestSink;

// Shared by the service and its calls.
struct Core : RequestCore {
  Core(LoopPool& loops, GenerateHandler handler) : RequestCore(std::move(handler)), loops(loops) {}
  LoopPool& loops;
  std::mutex mutex;
  std::vector<std::weak_ptr<LinkCall>> links;  // under the mutex
};

Event Refusal() {
  Event event;
  auto& error = *event.mutable_end()->mutable_error();
  error.set_error(std::string(RowOf(ErrorId::kServiceUnavailable).name));
  error.set_retry_after_ms(1'000);
  error.set_internal(kLinkRefusal);
  return event;
}

struct Signal {
  enum Kind { kMessage, kWritten, kReadEnded, kDone } kind;
  std::unique_ptr<LinkRequest> message;
};

// One Link call. gRPC's callbacks put signals into the inbox; everything else runs on the loop.
// Keeps itself alive until OnDone and until the last request of the link has ended.
class LinkCall : public grpc::ServerBidiReactor<LinkRequest, LinkResponse>,
                 public std::enable_shared_from_this<LinkCall> {
 public:
  LinkCall(std::shared_ptr<Core> core, Loop& loop) : core_(std::move(core)), loop_(loop) {}

  void Begin() {
    self_ = shared_from_this();
    {
      std::lock_guard lock(core_->mutex);
      std::erase_if(core_->links, [](const auto& link) { return link.expired(); });
      core_->links.push_back(self_);
    }
    inbox_ = std::make_shared<Inbox<Signal>>(
        loop_, [this](std::vector<Signal> signals) { Take(std::move(signals)); });
    StartSendInitialMetadata();  // the gateway now treats the link as connected
    message_ = std::make_unique<LinkRequest>();
    StartRead(message_.get());
    if (core_->draining) AnnounceDrain();
  }

  // Asks the gateway to send no more requests on this link. Any thread.
  void AnnounceDrain() {
    loop_.Post([self = shared_from_this()] { self->Queue(0, Refusal()); });
  }

 private:
  // On gRPC's threads.
  void OnReadDone(bool ok) override {
    if (!ok) return inbox_->Put({Signal::kReadEnded, nullptr});
    inbox_->Put({Signal::kMessage, std::move(message_)});
    message_ = std::make_unique<LinkRequest>();
    StartRead(message_.get());
  }
  void OnWriteDone(bool) override { inbox_->Put({Signal::kWritten, nullptr}); }
  void OnCancel() override { inbox_->Put({Signal::kReadEnded, nullptr}); }
  void OnDone() override { inbox_->Put({Signal::kDone, nullptr}); }

  // The rest runs on the loop.
  void Take(std::vector<Signal> signals) {
    auto keep = shared_from_this();
    for (Signal& signal : signals) {
      switch (signal.kind) {
        case Signal::kMessage:
          Handle(*signal.message);
          break;
        case Signal::kWritten:
          queue_.Written();
          Flush();
          break;
        case Signal::kReadEnded:
          Close();
          break;
        case Signal::kDone:
          inbox_->Close();
          self_.reset();
          break;
      }
    }
  }

  void Handle(LinkRequest& message) {
    for (auto& frame : *message.mutable_frames()) {
      uint64_t id = frame.stream_id();
      if (frame.has_start()) {
        Start(id, std::move(*frame.mutable_start()));
        continue;
      }
      auto found = sinks_.find(id);
      if (found == sinks_.end()) continue;  // its End is in flight
      if (frame.has_window_update()) found->second->Grant(frame.window_update().bytes());
      if (frame.has_cancel()) {
        auto sink = std::move(found->second);
        sinks_.erase(found);
        sink->Cancel();
      }
    }
  }

  void Start(uint64_t id, GenerateRequest request) {
    if (closed_ || sinks_.count(id) > 0) return;
    if (core_->draining) return Queue(id, Refusal());
    auto sink =
        std::make_shared<Sink>(loop_, [this, id](Event event) { Queue(id, std::move(event)); });
    sinks_[id] = sink;
    std::function<void()> finished = [self = shared_from_this(), id] { self->sinks_.erase(id); };
    loop_.Spawn(RunRequest(core_, std::move(request), std::move(sink), std::move(finished)));
  }

  void Queue(uint64_t id, Event event) {
    if (closed_) return;
    *queue_.Add(id).mutable_event() = std::move(event);
    if (flush_planned_) return;
    flush_planned_ = true;
    loop_.AtEndOfTurn([self = shared_from_this()] {
      self->flush_planned_ = false;
      self->Flush();
    });
  }

  void Flush() {
    if (queue_.writing()) return;
    if (closed_) {
      if (!finished_) Finish(grpc::Status::OK);
      finished_ = true;
      return;
    }
    if (const LinkResponse* message = queue_.Next()) StartWrite(message);
  }

  // The gateway disconnected: cancels its requests, which abort their engines and settle.
  void Close() {
    if (closed_) return;
    closed_ = true;
    queue_.Clear();
    auto sinks = std::move(sinks_);
    sinks_.clear();
    for (auto& [id, sink] : sinks) sink->Cancel();
    Flush();
  }

  std::shared_ptr<Core> core_;
  Loop& loop_;
  std::shared_ptr<LinkCall> self_;
  std::shared_ptr<Inbox<Signal>> inbox_;
  std::unique_ptr<LinkRequest> message_;
  LinkQueue<LinkResponse, LinkResponseFrame> queue_;
  std::unordered_map<uint64_t, std::shared_ptr<Sink>> sinks_;
  bool flush_planned_ = false;
  bool closed_ = false;
  bool finished_ = false;
};

struct CallSignal {
  enum Kind { kBegin, kWritten, kCancelled, kDone } kind;
};

// One Generate call: one request on its own stream.
class GenerateCall : public grpc::ServerWriteReactor<GenerateResponse>,
                     public std::enable_shared_from_this<GenerateCall> {
 public:
  GenerateCall(std::shared_ptr<Core> core, Loop& loop) : core_(std::move(core)), loop_(loop) {}

  void Begin(GenerateRequest request) {
    self_ = shared_from_this();
    request_ = std::move(request);
    inbox_ = std::make_shared<Inbox<CallSignal>>(
        loop_, [this](std::vector<CallSignal> signals) { Take(std::move(signals)); });
    inbox_->Put({CallSignal::kBegin});
  }

 private:
  void OnWriteDone(bool) override { inbox_->Put({CallSignal::kWritten}); }
  void OnCancel() override { inbox_->Put({CallSignal::kCancelled}); }
  void OnDone() override { inbox_->Put({CallSignal::kDone}); }

  void Take(std::vector<CallSignal> signals) {
    auto keep = shared_from_this();
    for (const CallSignal& signal : signals) {
      switch (signal.kind) {
        case CallSignal::kBegin:
          Start();
          break;
        case CallSignal::kWritten:
          writing_ = false;
          // The window of a call: opened again when gRPC has written the event.
          if (sink_) sink_->Grant(static_cast<int64_t>(outgoing_.event().ByteSizeLong()));
          Flush();
          break;
        case CallSignal::kCancelled:
          queue_.clear();
          if (sink_) sink_->Cancel();
          break;
        case CallSignal::kDone:
          inbox_->Close();
          self_.reset();
          break;
      }
    }
  }

  void Start() {
    if (core_->draining) {
      queue_.push_back(Refusal());
      ended_ = true;
      return Flush();
    }
    sink_ = std::make_shared<Sink>(loop_, [this](Event event) {
      queue_.push_back(std::move(event));
      Flush();
    });
    std::function<void()> finished = [self = shared_from_this()] {
      self->ended_ = true;
      self->sink_->Cancel();
      self->Flush();
    };
    loop_.Spawn(RunRequest(core_, std::move(request_), sink_, std::move(finished)));
  }

  void Flush() {
    if (writing_ || finished_) return;
    if (queue_.empty()) {
      if (!ended_) return;
      finished_ = true;
      return Finish(grpc::Status::OK);
    }
    *outgoing_.mutable_event() = std::move(queue_.front());
    queue_.pop_front();
    writing_ = true;
    StartWrite(&outgoing_);
  }

  std::shared_ptr<Core> core_;
  Loop& loop_;
  std::shared_ptr<GenerateCall> self_;
  std::shared_ptr<Inbox<CallSignal>> inbox_;
  GenerateRequest request_;
  GenerateResponse outgoing_;
  std::deque<Event> queue_;
  std::shared_ptr<Sink> sink_;
  bool writing_ = false;
  bool ended_ = false;
  bool finished_ = false;
};

class LinkServerImpl : public LinkServer, public InferenceService::CallbackService {
 public:
  LinkServerImpl(LoopPool& loops, GenerateHandler handler, CountHandler count)
      : core_(std::make_shared<Core>(loops, std::move(handler))), count_(std::move(count)) {}

  grpc::Service* service() override { return this; }
  std::unique_ptr<Generation> StartDirect(Loop& loop, GenerateRequest request) override {
    return StartDirectGeneration(core_, loop, std::move(request));
  }
  void Drain() override {
    core_->draining = true;
    std::lock_guard lock(core_->mutex);
    for (const auto& weak : core_->links) {
      if (auto link = weak.lock()) link->AnnounceDrain();
    }
  }
  int running() const override { return core_->running; }

 private:
  grpc::ServerBidiReactor<LinkRequest, LinkResponse>* Link(grpc::CallbackServerContext*) override {
    auto call = std::make_shared<LinkCall>(core_, core_->loops.Next());
    call->Begin();
    return call.get();
  }
  grpc::ServerWriteReactor<GenerateResponse>* Generate(grpc::CallbackServerContext*,
                                                       const GenerateRequest* request) override {
    auto call = std::make_shared<GenerateCall>(core_, core_->loops.Next());
    call->Begin(*request);
    return call.get();
  }

  grpc::ServerUnaryReactor* CountTokens(grpc::CallbackServerContext* context,
                                        const inference::v1::CountTokensRequest* request,
                                        inference::v1::CountTokensResponse* response) override {
    if (!count_) return InferenceService::CallbackService::CountTokens(context, request, response);
    if (core_->draining) return rpc::Answer(context, Unavailable(kLinkRefusal));
    return rpc::ServeOnLoop(context, core_->loops.Next(), [=, this]() -> Task<Result<void>> {
      ++core_->running;
      auto counted = co_await count_(*request);
      --core_->running;
      if (!counted) co_return Fail{std::move(counted).error()};
      *response = std::move(*counted);
      co_return Result<void>();
    });
  }

  std::shared_ptr<Core> core_;
  const CountHandler count_;
};

}  // namespace

std::unique_ptr<LinkServer> LinkServer::Make(LoopPool& loops, GenerateHandler handler,
                                             CountHandler count) {
  return std::make_unique<LinkServerImpl>(loops, std::move(handler), std::move(count));
}

}  // namespace tollgate::inference_router
