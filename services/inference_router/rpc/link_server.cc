#include "services/inference_router/rpc/link_server.h"

#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <deque>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "common/rpc/inbox.h"
#include "common/rpc/link_protocol.h"
#include "common/rpc/server.h"
#include "services/inference_router/rpc/link_call.h"
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

using Core = LinkCore;
using Sink = RequestSink;

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
          // Reopens the call's window when gRPC has written the event.
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
    if (auto refused = RefusalReason(*core_, request_)) {
      CountRefusal(*refused);
      queue_.push_back(RefusalOf(*refused));
      ended_ = true;
      return Flush();
    }
    sink_ = std::make_shared<Sink>(loop_, [this](Event event, int64_t) {
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
  LinkServerImpl(LoopPool& loops, GenerateHandler handler, CountHandler count, BodyLimits limits,
                 int64_t max_link_age_ms)
      : core_(std::make_shared<Core>(loops, std::move(handler), limits, max_link_age_ms)),
        count_(std::move(count)) {}

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
  bool all_sent() const override { return core_->unsent_links == 0; }

 private:
  grpc::ServerBidiReactor<LinkRequest, LinkResponse>* Link(
      grpc::CallbackServerContext* context) override {
    context->AddInitialMetadata(kLinkPiecesKey, "1");
    const bool pieces = context->client_metadata().count(kLinkPiecesKey) > 0;
    auto call = std::make_shared<LinkCall>(core_, core_->loops.Next(), pieces);
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
                                             CountHandler count, BodyLimits limits,
                                             int64_t max_link_age_ms) {
  return std::make_unique<LinkServerImpl>(loops, std::move(handler), std::move(count), limits,
                                          max_link_age_ms);
}

}  // namespace tollgate::inference_router
