#include "common/clients/link_client.h"

#include <grpcpp/channel.h>

#include <list>
#include <string>
#include <utility>

#include "common/clients/link.h"
#include "common/clients/link_stream.h"
#include "common/observability/metrics.h"
#include "common/rpc/call.h"
#include "common/rpc/link_protocol.h"
#include "common/rpc/replica.h"
#include "tollgate/inference/v1/inference.grpc.pb.h"

namespace tollgate {
namespace {

using inference::v1::CountTokensRequest;
using inference::v1::CountTokensResponse;
using inference::v1::Event;
using inference::v1::GenerateRequest;
using inference::v1::InferenceService;

constexpr int64_t kStartWaitMs = 1'000;
// Long enough for two engines.
constexpr int64_t kCountTimeoutMs = 8'000;

prometheus::Gauge& QueuedBytes(const std::string& router) {
  return metrics::Gauge("tollgate_gateway_link_queued_bytes",
                        "Bytes of requests that wait to be sent to an inference router, by its "
                        "place in targets.inference_routers; none: no router is connected",
                        {{"router", router}});
}

prometheus::Counter& NotSent(const std::string& reason) {
  return metrics::Counter("tollgate_gateway_link_not_sent_total",
                          "Requests that were dropped before an inference router had them, by "
                          "reason: full, no_router, client_gone",
                          {{"reason", reason}});
}

Error NoRouter(std::string internal) {
  return {
      .id = ErrorId::kServiceUnavailable, .retry_after_ms = 1'000, .internal = std::move(internal)};
}

// The caller's handle of one request.
class LinkGeneration : public Generation {
 public:
  explicit LinkGeneration(LinkStreamPtr stream) : stream_(std::move(stream)) {}
  ~LinkGeneration() override { Cancel(); }

  Task<Result<std::vector<Event>>> Next() override {
    LinkStreamPtr stream = stream_;  // this object may be destroyed while it waits
    while (stream->events.empty()) {
      if (stream->error) co_return Fail{*stream->error};
      if (stream->over) {
        co_return FailWith(ErrorId::kServerError, "",
                           "Next was called after the end of a generation");
      }
      co_await stream->arrived.Wait();
    }
    std::vector<Event> events;
    events.swap(stream->events);
    for (const Event& event : events) stream->ungranted_bytes += event.ByteSizeLong();
    if (stream->holder != nullptr && stream->ungranted_bytes >= kLinkWindowBytes / 2) {
      stream->holder->Grant(*stream, stream->ungranted_bytes);
      stream->ungranted_bytes = 0;
    }
    co_return events;
  }

  void Cancel() override {
    if (stream_->over) return;
    if (!stream_->sent) NotSent("client_gone").Increment();
    if (stream_->holder != nullptr) stream_->holder->Cancel(*stream_);
    stream_->Fail({.id = ErrorId::kServerError, .internal = "the generation was cancelled"});
  }

  bool sent() const override { return stream_->sent; }

 private:
  LinkStreamPtr stream_;
};

// Requests that arrived while no router was connected, for up to kStartWaitMs each.
class WaitingRoom final : public LinkStreamHolder {
 public:
  explicit WaitingRoom(Loop& loop) : loop_(loop), queued_(QueuedBytes("none")) {}
  ~WaitingRoom() { *alive_ = false; }

  bool full() const { return queued_.bytes() >= kMaxLinkQueuedBytes; }
  int64_t queued_bytes() const { return queued_.bytes(); }

  void Add(const LinkStreamPtr& stream) {
    stream->holder = this;
    stream->place = waiting_.insert(waiting_.end(), stream);
    queued_.Add(stream->waiting_bytes());
    stream->timer = loop_.RunAfter(
        kStartWaitMs, [this, alive = alive_, weak = std::weak_ptr<LinkStream>(stream)] {
          LinkStreamPtr stream = weak.lock();
          if (!*alive || !stream) return;
          stream->timer = 0;
          Cancel(*stream);
          NotSent("no_router").Increment();
          stream->Fail(NoRouter("no inference router is connected"));
        });
  }
  void Cancel(LinkStream& stream) override {
    Leave(stream);
    waiting_.erase(stream.place);
  }
  void Grant(LinkStream&, int64_t) override {}

  // Takes all, which belong to no holder then.
  std::list<LinkStreamPtr> TakeAll() {
    for (const LinkStreamPtr& stream : waiting_) Leave(*stream);
    return std::exchange(waiting_, {});
  }

 private:
  void Leave(LinkStream& stream) {
    queued_.Add(-stream.waiting_bytes());
    if (stream.timer != 0) loop_.CancelTimer(std::exchange(stream.timer, 0));
    stream.holder = nullptr;
  }

  Loop& loop_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::list<LinkStreamPtr> waiting_;
  metrics::CoarseGauge queued_;
};

class LinkClient : public InferenceClient {
 public:
  LinkClient(Loop& loop, std::vector<std::shared_ptr<rpc::Replica>> routers)
      : loop_(loop), connected_(loop), waiting_(loop) {
    for (auto& router : routers) {
      links_.push_back(std::make_unique<Link>(
          loop, Link::Options{.router = std::move(router),
                              .queued_bytes = &QueuedBytes(std::to_string(links_.size())),
                              .on_connected = [this] { StartWaiting(); },
                              .another_open = [this] { return NextOpen() != nullptr; },
                              .on_stalled = [this](auto unsent) { PlaceAll(std::move(unsent)); }}));
    }
    loop_.Post([this, alive = alive_] {
      if (!*alive) return;
      for (auto& link : links_) link->Begin();
    });
  }
  ~LinkClient() override { *alive_ = false; }

  std::unique_ptr<Generation> Start(GenerateRequest request) override {
    auto stream = std::make_shared<LinkStream>(loop_, std::move(request));
    Place(stream);
    return std::make_unique<LinkGeneration>(std::move(stream));
  }

  Task<Result<CountTokensResponse>> CountTokens(CountTokensRequest request) override {
    if (request.members_json().size() > kMaxCountedBytes) {
      co_return FailWith(ErrorId::kServiceUnavailable, "", "the prompt is too large to be counted");
    }
    Link* link = NextOpen();
    if (link == nullptr && co_await connected_.WaitFor(kStartWaitMs)) link = NextOpen();
    if (link == nullptr) {
      co_return FailWith(ErrorId::kServiceUnavailable, "", "no inference router is connected");
    }
    // A router that hangs is not waited for: the caller has an estimate.
    rpc::CancelSlot cancel;
    std::function<void()> abandon = [&cancel] { cancel.Cancel(); };
    const rpc::Replica::Use use(link->router(), std::move(abandon), true);
    const auto stub = use.replica()->Stub<InferenceService>();
    using Async = InferenceService::StubInterface::async_interface;
    co_return co_await rpc::Unary(loop_, stub->async(), &Async::CountTokens, std::move(request),
                                  kCountTimeoutMs, &cancel);
  }

 private:
  // Round-robin over the links that are open and have room for the body; those whose router is in
  // doubt only when there is no other. Sets any_open if there is an open one.
  Link* NextOpen(size_t body_bytes = 0, bool* any_open = nullptr) {
    for (const bool doubtful : {false, true}) {
      for (size_t i = 0; i < links_.size(); ++i) {
        Link* link = links_[next_++ % links_.size()].get();
        if (!link->open() || link->doubtful() != doubtful) continue;
        if (link->Fits(body_bytes)) return link;
        if (any_open != nullptr) *any_open = true;
      }
    }
    return nullptr;
  }

  void Place(const LinkStreamPtr& stream) {
    bool any_open = false;
    if (Link* link = NextOpen(stream->request.members_json().size(), &any_open)) {
      return link->Start(stream, ++last_id_);
    }
    if (!any_open && !waiting_.full()) return waiting_.Add(stream);
    NotSent("full").Increment();
    stream->Fail(NoRouter("too many bytes wait for the inference routers"));
  }
  void PlaceAll(std::list<LinkStreamPtr> streams) {
    for (const LinkStreamPtr& stream : streams) Place(stream);
  }

  void StartWaiting() {
    connected_.NotifyAll();
    PlaceAll(waiting_.TakeAll());
  }

  Loop& loop_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  Notify connected_;
  size_t next_ = 0;
  uint64_t last_id_ = 0;
  WaitingRoom waiting_;
  std::vector<std::unique_ptr<Link>> links_;
};

}  // namespace

std::unique_ptr<InferenceClient> MakeLinkClient(
    Loop& loop, std::vector<std::shared_ptr<rpc::Replica>> routers) {
  return std::make_unique<LinkClient>(loop, std::move(routers));
}

std::unique_ptr<InferenceClient> MakeLinkClient(
    Loop& loop, std::vector<std::shared_ptr<grpc::Channel>> channels) {
  std::vector<std::shared_ptr<rpc::Replica>> routers;
  for (auto& channel : channels) {
    routers.push_back(std::make_shared<rpc::Replica>(
        loop, "inference-router", std::to_string(routers.size()), std::move(channel)));
  }
  return MakeLinkClient(loop, std::move(routers));
}

}  // namespace tollgate
