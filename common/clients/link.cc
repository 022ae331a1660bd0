#include "common/clients/link.h"

#include <grpcpp/channel.h>

#include <utility>

#include "common/base/clock.h"
#include "common/observability/log.h"
#include "common/rpc/link_protocol.h"

namespace tollgate {
namespace {

using inference::v1::EventPiece;
using inference::v1::LinkRequest;
using inference::v1::LinkResponse;

constexpr int64_t kReconnectMs = 100;

// The router ran and settles nothing. Routers of earlier versions send only the text.
bool IsRefusal(const inference::v1::End& end) {
  return end.not_run() || end.error().internal() == kLinkRefusal;
}

}  // namespace

Link::~Link() {
  *alive_ = false;
  options_.router->Unwatch();
  Disconnect();
}

void Link::Begin() {
  options_.router->Watch([this] { OnHealth(); });
  Connect();
}

void Link::Retire() {
  retired_ = true;
  PlaceElsewhere(true);
}

void Link::Connect() {
  inbox_ = std::make_shared<Inbox<LinkSignal>>(
      loop_, [this](std::vector<LinkSignal> signals) { Take(std::move(signals)); });
  connection_ = std::make_unique<LinkConnection>(router()->channel().get(), inbox_);
}

bool Link::Fits(size_t body_bytes) const {
  return outgoing_.queued_bytes() < kMaxLinkQueuedBytes &&
         (outgoing_.pieces() || body_bytes <= kMaxUnsplitBodyBytes);
}

void Link::Start(const LinkStreamPtr& stream, uint64_t id) {
  stream->id = id;
  stream->holder = this;
  streams_[id] = stream;
  outgoing_.Start(stream);
  PlanFlush();
}

void Link::Cancel(LinkStream& stream) {
  if (outgoing_.Drop(stream)) {
    outgoing_.Add(stream.id).mutable_cancel();
    PlanFlush();
  }
  streams_.erase(stream.id);
}

void Link::Grant(LinkStream& stream, int64_t bytes) {
  outgoing_.Add(stream.id).mutable_window_update()->set_bytes(bytes);
  PlanFlush();
}

void Link::PlanFlush() {
  if (flush_planned_) return;
  flush_planned_ = true;
  loop_.AtEndOfTurn([this, alive = alive_] {
    if (!*alive) return;
    flush_planned_ = false;
    Flush();
  });
}

void Link::Flush() {
  if (!connected_) return;
  if (const LinkRequest* message = outgoing_.Next()) {
    ++messages_;
    connection_->Write(message);
  }
  if (outgoing_.has_unsent()) WatchForStall();
}

// A router can hang or be stopped while its connection stays open: keepalive would notice after 15
// s.
void Link::OnHealth() {
  const bool hung = router()->hung();
  const bool begins = hung && !was_hung_;
  was_hung_ = hung;
  if (!begins) {
    if (open()) options_.on_connected();
    return;
  }
  router()->AbandonUses();
  PlaceElsewhere(true);
  if (options_.another_open()) FailUnanswered();
  loop_.RunAfter(kGiveUpMs, [this, alive = alive_, hang = ++hangs_] {
    if (!*alive || hang != hangs_ || !router()->hung() || !connected_) return;
    log::Warn("an inference router hangs; failing its requests",
              {{"address", router()->address()}, {"requests", streams_.size()}});
    FailStreams();
    Reconnect(grpc::Status(grpc::StatusCode::UNAVAILABLE, "the router hangs"));
  });
}

// Fails requests that the router has received but not begun to answer: they can run elsewhere.
void Link::FailUnanswered() {
  std::vector<LinkStreamPtr> unanswered;
  for (const auto& [id, stream] : streams_) {
    if (!stream->answered) unanswered.push_back(stream);
  }
  for (const LinkStreamPtr& stream : unanswered) {
    Fail(*stream, Unavailable(Reason::kRouterUnavailable, "the inference router hangs").error);
  }
}

void Link::WatchForStall() {
  if (stall_watched_) return;
  stall_watched_ = true;
  loop_.RunAfter(kStallMs, [this, alive = alive_, seen = messages_] {
    if (!*alive) return;
    stall_watched_ = false;
    if (!connected_ || !outgoing_.has_unsent()) return;
    if (messages_ == seen) OnStall();
    if (outgoing_.has_unsent()) WatchForStall();
  });
}

void Link::OnStall() {
  ++stalls_;
  if (!stalled_) log::Warn("an inference router does not read its link", {});
  stalled_ = true;
  PlaceElsewhere(stalls_ >= kStallsOfBodies);
}

// Moves requests that the router has not received completely.
void Link::PlaceElsewhere(bool with_bodies) {
  std::list<LinkStreamPtr> unsent = outgoing_.TakeUnsent(with_bodies);
  for (const LinkStreamPtr& stream : unsent) {
    stream->holder = nullptr;
    streams_.erase(stream->id);
  }
  options_.on_stalled(std::move(unsent));
}

void Link::Take(std::vector<LinkSignal> signals) {
  for (LinkSignal& signal : signals) {
    switch (signal.kind) {
      case LinkSignal::kConnected:
        connected_ = true;
        connected_us_ = SystemClock::Get().MonotonicUs();
        outgoing_.set_pieces(signal.pieces);
        options_.on_connected();
        Flush();
        break;
      case LinkSignal::kMessage:
        Deliver(*signal.message);
        break;
      case LinkSignal::kWritten:
        outgoing_.Written();
        stalls_ = 0;
        if (std::exchange(stalled_, false)) options_.on_connected();
        Flush();
        break;
      case LinkSignal::kReadEnded:
        FailStreams();
        connection_->Release();
        break;
      case LinkSignal::kDone:
        FailStreams();
        Reconnect(signal.status);
        return;  // the inbox of these signals is closed
    }
  }
}

void Link::Deliver(LinkResponse& message) {
  const bool was_draining = draining_;
  for (auto& frame : *message.mutable_frames()) {
    if (frame.stream_id() == 0) draining_ = true;
    auto found = streams_.find(frame.stream_id());
    if (found == streams_.end()) continue;  // cancelled; its last events were in flight
    LinkStream& stream = *found->second;
    stream.answered = true;
    if (frame.has_event_piece() &&
        !TakePiece(stream, frame.event_piece(), *frame.mutable_event())) {
      continue;
    }
    if (frame.event().has_end()) {
      stream.over = true;
      stream.holder = nullptr;
      if (IsRefusal(frame.event().end())) stream.sent = false;
      // The refusal of a request may arrive before the one of the link.
      draining_ = draining_ || frame.event().end().error().internal() == kLinkRefusal;
      outgoing_.Drop(stream);  // a request may be refused before its body is sent
    }
    stream.events.push_back(std::move(*frame.mutable_event()));
    stream.arrived.NotifyAll();
    if (stream.over) streams_.erase(found);
  }
  // The router would refuse requests that it has not received yet.
  if (!draining_ || was_draining) return;
  PlaceElsewhere(true);
  options_.on_draining((SystemClock::Get().MonotonicUs() - connected_us_) / 1000);
}

bool Link::TakePiece(LinkStream& stream, const EventPiece& piece, inference::v1::Event& event) {
  std::string& bytes = stream.partial_event;
  if (bytes.size() + piece.bytes().size() > kMaxEventBytes) {
    Fail(stream, {.id = ErrorId::kServerError, .internal = "an event is too large"});
    return false;
  }
  bytes += piece.bytes();
  if (!piece.last()) return false;
  const bool valid = event.ParseFromString(bytes);
  bytes = std::string();
  if (!valid) Fail(stream, {.id = ErrorId::kServerError, .internal = "an event is damaged"});
  return valid;
}

// Fails one running request; the router settles what it produced.
void Link::Fail(LinkStream& stream, Error error) {
  const LinkStreamPtr keep = streams_.at(stream.id);
  Cancel(stream);
  stream.Fail(std::move(error));
}

// Fails every request of the link. The router settles those that ran. It does not know the others,
// so their callers must void the holds.
void Link::FailStreams() {
  connected_ = false;
  outgoing_.Clear();
  auto streams = std::move(streams_);
  streams_.clear();
  for (auto& [id, stream] : streams) {
    stream->Fail(
        Unavailable(Reason::kRouterUnavailable, "the link to the inference router was lost").error);
  }
}

void Link::Reconnect(const grpc::Status& status) {
  log::Debug("link to an inference router ended", {{"status", status.error_message()}});
  Disconnect();
  if (retired_) return;
  loop_.RunAfter(kReconnectMs, [this, alive = alive_] {
    if (*alive && !retired_) Connect();
  });
}

void Link::Disconnect() {
  connected_ = false;
  draining_ = false;
  stalled_ = false;
  stalls_ = 0;
  if (!connection_) return;
  inbox_->Close();
  connection_->Cancel();
  connection_->Release();
  connection_->WaitUntilDone();
  connection_.reset();
  outgoing_.Written();  // gRPC no longer uses the message
}

}  // namespace tollgate
