#include "common/clients/link_client.h"

#include <grpcpp/channel.h>

#include <algorithm>
#include <list>
#include <string>
#include <utility>

#include "common/clients/link.h"
#include "common/clients/link_stream.h"
#include "common/observability/held_metrics.h"
#include "common/observability/metrics.h"
#include "common/rpc/call.h"
#include "common/rpc/link_protocol.h"
#include "common/rpc/replica.h"
#include "common/rpc/resolver.h"
#include "tollgate/inference/v1/inference.grpc.pb.h"

namespace tollgate {
namespace {

using inference::v1::CountTokensRequest;
using inference::v1::CountTokensResponse;
using inference::v1::Event;
using inference::v1::GenerateRequest;
using inference::v1::InferenceService;

constexpr int64_t kStartWaitMs = 1'000;
// How often addresses are taken from the resolver and idle retired links are destroyed.
constexpr int64_t kLookUpMs = 1'000;
// Used at the start, until names are resolved or their resolution is left to gRPC.
constexpr int64_t kFirstLookUpMs = 20;
constexpr int kFirstLookUps = 25;
// A link that was open for a shorter time is not replaced at once: its router is stopping.
constexpr int64_t kOldMs = 1'500;
// Enough time to try two engines.
constexpr int64_t kCountTimeoutMs = 8'000;

std::shared_ptr<prometheus::Gauge> QueuedBytes(const std::string& router) {
  return metrics::HeldGauge("tollgate_gateway_link_queued_bytes",
                            "Bytes of requests that wait to be sent to an inference router, by its "
                            "address; none: no router is connected",
                            {{"router", router}});
}

prometheus::Counter& NotSent(const std::string& reason) {
  return metrics::Counter("tollgate_gateway_link_not_sent_total",
                          "Requests dropped before an inference router received them, by "
                          "reason: full, no_router, client_gone",
                          {{"reason", reason}});
}

Error NoRouter(std::string internal) {
  return Unavailable(Reason::kRouterUnavailable, std::move(internal)).error;
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
  explicit WaitingRoom(Loop& loop) : loop_(loop), gauge_(QueuedBytes("none")), queued_(*gauge_) {}
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

  // Takes all requests. They no longer have a holder.
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
  const std::shared_ptr<prometheus::Gauge> gauge_;
  metrics::CoarseGauge queued_;
};

class LinkClient : public InferenceClient {
 public:
  LinkClient(Loop& loop, RouterTargets routers)
      : loop_(loop), routers_(std::move(routers)), connected_(loop), waiting_(loop) {
    // All series exist from the start, so that alerts see them rise from zero.
    for (const char* reason : {"full", "no_router", "client_gone"}) NotSent(reason);
    for (const std::string& target : routers_.targets) {
      const auto parts = rpc::SplitTargets(target);
      parts_.insert(parts_.end(), parts.begin(), parts.end());
      if (parts.empty()) parts_.push_back(target);
    }
    loop_.Post([this, alive = alive_] {
      if (*alive) LookUp(1);
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
    // If the router hangs, the call is cancelled: the caller has an estimate.
    rpc::CancelSlot cancel;
    std::function<void()> abandon = [&cancel] { cancel.Cancel(); };
    const rpc::Replica::Use use(link->router(), std::move(abandon), true);
    const auto stub = use.replica()->Stub<InferenceService>();
    using Async = InferenceService::StubInterface::async_interface;
    co_return co_await rpc::Unary(loop_, stub->async(), &Async::CountTokens, std::move(request),
                                  kCountTimeoutMs, &cancel);
  }

 private:
  bool HasNames() const {
    return routers_.resolver != nullptr && std::any_of(parts_.begin(), parts_.end(), rpc::IsName);
  }

  // times: number of this look-up, from 1.
  void LookUp(int times) {
    std::vector<std::string> addresses =
        HasNames() ? routers_.resolver->AddressesOfAll(parts_) : parts_;
    const bool unknown = HasNames() && std::any_of(addresses.begin(), addresses.end(), rpc::IsName);
    // Connects to known addresses. A name that is not resolved yet is skipped for a moment.
    const bool early = unknown && times < kFirstLookUps;
    if (early) std::erase_if(addresses, rpc::IsName);
    SetRouters(addresses);
    std::erase_if(retired_, [](const auto& link) { return link->idle(); });
    loop_.RunAfter(early ? kFirstLookUpMs : kLookUpMs, [this, alive = alive_, times] {
      if (*alive) LookUp(std::min(times + 1, kFirstLookUps));
    });
  }

  void SetRouters(const std::vector<std::string>& addresses) {
    for (const std::string& address : addresses) {
      const bool known = std::any_of(links_.begin(), links_.end(), [&](const auto& link) {
        return link->router()->address() == address;
      });
      if (!known) AddLink(address);
    }
    for (size_t i = links_.size(); i-- > 0;) {
      if (std::find(addresses.begin(), addresses.end(), links_[i]->router()->address()) ==
          addresses.end()) {
        Retire(i);
      }
    }
  }

  void AddLink(const std::string& address) {
    auto link = std::make_unique<Link>(
        loop_,
        Link::Options{.router = routers_.make(address),
                      .queued_bytes = QueuedBytes(address),
                      .on_connected = [this] { StartWaiting(); },
                      .another_open = [this] { return NextOpen() != nullptr; },
                      .on_stalled = [this](auto unsent) { PlaceAll(std::move(unsent)); },
                      .on_draining =
                          [this, address](int64_t was_open_ms) { Replace(address, was_open_ms); }});
    links_.push_back(std::move(link));
    links_.back()->Begin();
  }

  // Its requests continue; the link is destroyed when it is idle.
  void Retire(size_t place) {
    retired_.push_back(std::move(links_[place]));
    links_.erase(links_.begin() + static_cast<ptrdiff_t>(place));
    retired_.back()->Retire();
  }

  // The router asks for another connection. Deferred, since the link is still processing a message.
  void Replace(const std::string& address, int64_t was_open_ms) {
    loop_.RunAfter(was_open_ms >= kOldMs ? 0 : kLookUpMs, [this, alive = alive_, address] {
      if (!*alive) return;
      for (size_t i = 0; i < links_.size(); ++i) {
        if (links_[i]->router()->address() != address || !links_[i]->draining()) continue;
        AddLink(address);
        return Retire(i);
      }
    });
  }

  // Round-robin over open links with room for the body. Links to ejected routers are used only if
  // there is no other. Sets any_open if at least one link is open.
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
  const RouterTargets routers_;
  std::vector<std::string> parts_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  Notify connected_;
  size_t next_ = 0;
  uint64_t last_id_ = 0;
  WaitingRoom waiting_;
  std::vector<std::unique_ptr<Link>> links_;
  // Replaced links and links to removed addresses, while their requests run.
  std::vector<std::unique_ptr<Link>> retired_;
};

}  // namespace

std::unique_ptr<InferenceClient> MakeLinkClient(Loop& loop, RouterTargets routers) {
  return std::make_unique<LinkClient>(loop, std::move(routers));
}

std::unique_ptr<InferenceClient> MakeLinkClient(
    Loop& loop, std::vector<std::shared_ptr<grpc::Channel>> channels) {
  RouterTargets routers;
  for (size_t i = 0; i < channels.size(); ++i) routers.targets.push_back(std::to_string(i));
  routers.make = [&loop, channels = std::move(channels)](const std::string& place) {
    return std::make_shared<rpc::Replica>(loop, "inference-router", place,
                                          channels[std::stoul(place)]);
  };
  return MakeLinkClient(loop, std::move(routers));
}

}  // namespace tollgate
