#include "common/clients/link_client.h"
#include "common/rpc/link_protocol.h"

#include <grpcpp/channel.h>
#include <grpcpp/support/client_callback.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <list>
#include <mutex>
#include <unordered_map>

#include "common/observability/log.h"
#include "common/rpc/call.h"
#include "common/rpc/inbox.h"
#include "common/rpc/link_queue.h"
#include "common/runtime/notify.h"
#include "tollgate/inference/v1/inference.grpc.pb.h"

namespace tollgate {
namespace {

using inference::v1::CountTokensRequest;
using inference::v1::CountTokensResponse;
using inference::v1::Event;
using inference::v1::GenerateRequest;
using inference::v1::InferenceService;
using inference::v1::LinkRequest;
using inference::v1::LinkRequestFrame;
using inference::v1::LinkResponse;

constexpr int64_t kReconnectMs = 100;
constexpr int64_t kStartWaitMs = 1'000;
// Long enough for two engines.
constexpr int64_t kCountTimeoutMs = 8'000;

// From gRPC's threads to the loop.
struct Signal {
  enum Kind { kConnected, kMessage, kWritten, kReadEnded, kDone } kind;
  std::unique_ptr<LinkResponse> message;
  grpc::Status status;
};

// The gRPC side of one connection attempt. Its callbacks only put signals into the inbox.
class Reactor : public grpc::ClientBidiReactor<LinkRequest, LinkResponse> {
 public:
  Reactor(grpc::ChannelInterface* channel, std::shared_ptr<Inbox<Signal>> inbox)
      : inbox_(std::move(inbox)) {
    InferenceService::Stub stub(std::shared_ptr<grpc::ChannelInterface>(channel, [](auto*) {}));
    stub.async()->Link(&context_, this);
    AddHold();  // the loop starts writes outside of gRPC's callbacks
    message_ = std::make_unique<LinkResponse>();
    StartRead(message_.get());
    StartCall();
  }

  // On the loop, or after it has stopped. One write at a time, none after Release.
  void Write(const LinkRequest* request) { StartWrite(request); }
  void Release() {
    if (!released_) RemoveHold();
    released_ = true;
  }
  void Cancel() { context_.TryCancel(); }

  void WaitUntilDone() {
    std::unique_lock lock(mutex_);
    done_signal_.wait(lock, [this] { return done_; });
  }

 private:
  void OnReadInitialMetadataDone(bool ok) override {
    if (ok) inbox_->Put({Signal::kConnected, nullptr, {}});
  }
  void OnReadDone(bool ok) override {
    if (!ok) return inbox_->Put({Signal::kReadEnded, nullptr, {}});
    inbox_->Put({Signal::kMessage, std::move(message_), {}});
    message_ = std::make_unique<LinkResponse>();
    StartRead(message_.get());
  }
  void OnWriteDone(bool ok) override {
    if (ok) inbox_->Put({Signal::kWritten, nullptr, {}});  // a failed write also ends the read
  }
  void OnDone(const grpc::Status& status) override {
    inbox_->Put({Signal::kDone, nullptr, status});
    std::lock_guard lock(mutex_);
    done_ = true;
    done_signal_.notify_all();
  }

  grpc::ClientContext context_;
  std::shared_ptr<Inbox<Signal>> inbox_;
  std::unique_ptr<LinkResponse> message_;
  bool released_ = false;
  std::mutex mutex_;
  std::condition_variable done_signal_;
  bool done_ = false;
};

class LinkClient;

// One request. Shared by its Generation and the client.
struct Stream {
  explicit Stream(Loop& loop) : arrived(loop) {}
  uint64_t id = 0;
  class Link* link = nullptr;  // null before it is sent and after it is over
  GenerateRequest request;     // until it is sent
  std::vector<Event> events;
  int64_t ungranted_bytes = 0;
  bool sent = false;
  bool over = false;  // End received, link broken, or cancelled
  std::optional<Error> error;
  Notify arrived;
};
using StreamPtr = std::shared_ptr<Stream>;

// One router target: its current connection, the write queue, and the running requests.
class Link {
 public:
  Link(Loop& loop, std::shared_ptr<grpc::Channel> channel, std::function<void()> on_connected)
      : loop_(loop), channel_(std::move(channel)), on_connected_(std::move(on_connected)) {}

  // On the loop, or after it has stopped.
  ~Link() {
    *alive_ = false;
    Disconnect();
  }

  // Whether it accepts requests.
  bool open() const { return connected_ && !draining_; }
  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }

  void Connect() {
    inbox_ = std::make_shared<Inbox<Signal>>(
        loop_, [this](std::vector<Signal> signals) { Take(std::move(signals)); });
    reactor_ = std::make_unique<Reactor>(channel_.get(), inbox_);
  }

  void Start(const StreamPtr& stream, uint64_t id) {
    stream->id = id;
    stream->link = this;
    stream->sent = true;
    streams_[id] = stream;
    LinkRequestFrame& frame = Queue(id);
    *frame.mutable_start() = std::move(stream->request);
  }
  void Cancel(Stream& stream) {
    Queue(stream.id).mutable_cancel();
    streams_.erase(stream.id);
  }
  void Grant(const Stream& stream, int64_t bytes) {
    Queue(stream.id).mutable_window_update()->set_bytes(bytes);
  }

 private:
  LinkRequestFrame& Queue(uint64_t id) {
    if (!flush_planned_) {
      flush_planned_ = true;
      loop_.AtEndOfTurn([this, alive = alive_] {
        if (!*alive) return;
        flush_planned_ = false;
        Flush();
      });
    }
    return queue_.Add(id);
  }

  void Flush() {
    if (!connected_) return;
    if (const LinkRequest* message = queue_.Next()) reactor_->Write(message);
  }

  void Take(std::vector<Signal> signals) {
    for (Signal& signal : signals) {
      switch (signal.kind) {
        case Signal::kConnected:
          connected_ = true;
          on_connected_();
          Flush();
          break;
        case Signal::kMessage:
          Deliver(*signal.message);
          break;
        case Signal::kWritten:
          queue_.Written();
          Flush();
          break;
        case Signal::kReadEnded:
          FailStreams();
          reactor_->Release();
          break;
        case Signal::kDone:
          FailStreams();
          Reconnect(signal.status);
          return;  // the inbox of these signals is closed
      }
    }
  }

  void Deliver(LinkResponse& message) {
    for (auto& frame : *message.mutable_frames()) {
      if (frame.stream_id() == 0) draining_ = true;
      auto found = streams_.find(frame.stream_id());
      if (found == streams_.end()) continue;  // cancelled; its last events were in flight
      Stream& stream = *found->second;
      if (frame.event().has_end()) {
        stream.over = true;
        stream.link = nullptr;
        if (frame.event().end().error().internal() == kLinkRefusal) stream.sent = false;
      }
      stream.events.push_back(std::move(*frame.mutable_event()));
      stream.arrived.NotifyAll();
      if (stream.over) streams_.erase(found);
    }
  }

  // Fails every running request; the router settles what they produced.
  void FailStreams() {
    connected_ = false;
    for (const LinkRequestFrame& frame : queue_.waiting()) {
      auto found = streams_.find(frame.stream_id());
      // Never written: the router does not know the request, so the gateway must void its hold.
      if (frame.has_start() && found != streams_.end()) found->second->sent = false;
    }
    queue_.Clear();
    auto streams = std::move(streams_);
    streams_.clear();
    for (auto& [id, stream] : streams) {
      stream->over = true;
      stream->link = nullptr;
      stream->error = Error{.id = ErrorId::kServiceUnavailable,
                            .retry_after_ms = 1'000,
                            .internal = "the link to the inference router was lost"};
      stream->arrived.NotifyAll();
    }
  }

  void Reconnect(const grpc::Status& status) {
    log::Debug("link to an inference router ended", {{"status", status.error_message()}});
    Disconnect();
    loop_.RunAfter(kReconnectMs, [this, alive = alive_] {
      if (*alive) Connect();
    });
  }

  void Disconnect() {
    connected_ = false;
    draining_ = false;
    queue_.Written();  // no write is pending on the next connection
    if (!reactor_) return;
    inbox_->Close();
    reactor_->Cancel();
    reactor_->Release();
    reactor_->WaitUntilDone();
    reactor_.reset();
  }

  Loop& loop_;
  std::shared_ptr<grpc::Channel> channel_;
  std::function<void()> on_connected_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::shared_ptr<Inbox<Signal>> inbox_;
  std::unique_ptr<Reactor> reactor_;
  LinkQueue<LinkRequest, LinkRequestFrame> queue_;
  std::unordered_map<uint64_t, StreamPtr> streams_;
  bool connected_ = false;
  bool draining_ = false;  // the router refuses new requests; running ones continue
  bool flush_planned_ = false;
};

// The caller's handle of one request.
class LinkGeneration : public Generation {
 public:
  LinkGeneration(StreamPtr stream) : stream_(std::move(stream)) {}
  ~LinkGeneration() override { Cancel(); }

  Task<Result<std::vector<Event>>> Next() override {
    StreamPtr stream = stream_;  // this object may be destroyed while it waits
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
    if (stream->link != nullptr && stream->ungranted_bytes >= kLinkWindowBytes / 2) {
      stream->link->Grant(*stream, stream->ungranted_bytes);
      stream->ungranted_bytes = 0;
    }
    co_return events;
  }

  void Cancel() override {
    if (stream_->over) return;
    stream_->over = true;
    if (stream_->link != nullptr) stream_->link->Cancel(*stream_);
    stream_->link = nullptr;
    stream_->error = Error{.id = ErrorId::kServerError, .internal = "the generation was cancelled"};
    stream_->arrived.NotifyAll();
  }

  bool sent() const override { return stream_->sent; }

 private:
  StreamPtr stream_;
};

class LinkClient : public InferenceClient {
 public:
  LinkClient(Loop& loop, std::vector<std::shared_ptr<grpc::Channel>> routers)
      : loop_(loop), connected_(loop) {
    for (auto& channel : routers) {
      links_.push_back(
          std::make_unique<Link>(loop, std::move(channel), [this] { StartWaiting(); }));
    }
    loop_.Post([this, alive = alive_] {
      if (!*alive) return;
      for (auto& link : links_) link->Connect();
    });
  }
  ~LinkClient() override { *alive_ = false; }

  std::unique_ptr<Generation> Start(GenerateRequest request) override {
    auto stream = std::make_shared<Stream>(loop_);
    stream->request = std::move(request);
    if (Link* link = NextConnected()) {
      link->Start(stream, ++last_id_);
    } else {
      Wait(stream);
    }
    return std::make_unique<LinkGeneration>(stream);
  }

  Task<Result<CountTokensResponse>> CountTokens(CountTokensRequest request) override {
    Link* link = NextConnected();
    if (link == nullptr && co_await connected_.WaitFor(kStartWaitMs)) link = NextConnected();
    if (link == nullptr) {
      co_return FailWith(ErrorId::kServiceUnavailable, "", "no inference router is connected");
    }
    const auto stub = InferenceService::NewStub(link->channel());
    using Async = InferenceService::StubInterface::async_interface;
    co_return co_await rpc::Unary(loop_, stub->async(), &Async::CountTokens, std::move(request),
                                  kCountTimeoutMs);
  }

 private:
  Link* NextConnected() {
    for (size_t i = 0; i < links_.size(); ++i) {
      Link* link = links_[next_++ % links_.size()].get();
      if (link->open()) return link;
    }
    return nullptr;
  }

  void Wait(const StreamPtr& stream) {
    waiting_.push_back(stream);
    loop_.RunAfter(kStartWaitMs, [weak = std::weak_ptr<Stream>(stream)] {
      StreamPtr stream = weak.lock();
      if (!stream || stream->sent || stream->over) return;
      stream->over = true;
      stream->error = Error{.id = ErrorId::kServiceUnavailable,
                            .retry_after_ms = 1'000,
                            .internal = "no inference router is connected"};
      stream->arrived.NotifyAll();
    });
  }

  void StartWaiting() {
    connected_.NotifyAll();
    auto waiting = std::move(waiting_);
    waiting_.clear();
    for (const StreamPtr& stream : waiting) {
      if (stream->over) continue;
      if (Link* link = NextConnected()) {
        link->Start(stream, ++last_id_);
      } else {
        waiting_.push_back(stream);
      }
    }
  }

  Loop& loop_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::vector<std::unique_ptr<Link>> links_;
  Notify connected_;
  size_t next_ = 0;
  uint64_t last_id_ = 0;
  std::vector<StreamPtr> waiting_;
};

}  // namespace

std::unique_ptr<InferenceClient> MakeLinkClient(
    Loop& loop, std::vector<std::shared_ptr<grpc::Channel>> routers) {
  return std::make_unique<LinkClient>(loop, std::move(routers));
}

}  // namespace tollgate
