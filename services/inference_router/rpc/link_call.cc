#include "services/inference_router/rpc/link_call.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

#include "common/observability/log.h"
#include "common/observability/metrics.h"
#include "common/rpc/error_detail.h"
#include "common/rpc/link_protocol.h"

namespace tollgate::inference_router {

using inference::v1::Event;
using inference::v1::GenerateRequest;
using inference::v1::LinkRequest;
using inference::v1::LinkRequestFrame;
using inference::v1::LinkResponse;

namespace {

prometheus::Gauge& QueuedBytes() {
  return metrics::Gauge("tollgate_router_link_queued_bytes",
                        "Bytes of events that wait to be sent to gateways");
}

}  // namespace

LinkCall::LinkCall(std::shared_ptr<LinkCore> core, Loop& loop, bool pieces)
    : core_(std::move(core)),
      loop_(loop),
      pieces_(pieces),
      queue_(QueuedBytes()),
      bodies_(core_->bodies) {}

void LinkCall::Begin() {
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
  // Bounds the age of the link, so that it does not keep using a certificate that has expired or
  // was replaced.
  loop_.Post([weak = weak_from_this(), &loop = loop_, age_ms = core_->max_link_age_ms] {
    loop.RunAfter(age_ms * (900 + std::rand() % 200) / 1000, [weak] {
      if (const auto self = weak.lock()) self->AnnounceDrain();
    });
  });
}

void LinkCall::AnnounceDrain() {
  loop_.Post([self = shared_from_this()] {
    Event event = RefusalOf(DrainingError());
    const auto bytes = static_cast<int64_t>(event.ByteSizeLong());
    self->Queue(0, std::move(event), bytes);
  });
}

void LinkCall::OnReadDone(bool ok) {
  if (!ok) return inbox_->Put({Signal::kReadEnded, nullptr});
  auto message = std::exchange(message_, std::make_unique<LinkRequest>());
  inbox_->Put({Signal::kMessage, std::move(message)});
  if (++unread_ < kMaxUnreadMessages) StartRead(message_.get());
}

void LinkCall::Take(std::vector<Signal> signals) {
  auto keep = shared_from_this();
  for (Signal& signal : signals) {
    switch (signal.kind) {
      case Signal::kMessage:
        Handle(*signal.message);
        signal.message.reset();
        if (unread_-- == kMaxUnreadMessages && !finished_) StartRead(message_.get());
        break;
      case Signal::kWritten:
        queue_.Written();
        Flush();
        WakeProducers();
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

void LinkCall::Handle(LinkRequest& message) {
  if (closed_) return;
  for (LinkRequestFrame& frame : *message.mutable_frames()) {
    const uint64_t id = frame.stream_id();
    switch (frame.kind_case()) {
      case LinkRequestFrame::kStart:
        Start(id, std::move(*frame.mutable_start()));
        break;
      case LinkRequestFrame::kStartInPieces: {
        auto begun = core_->draining
                         ? Result<void>(Fail{DrainingError()})
                         : bodies_.Begin(id, std::move(*frame.mutable_start_in_pieces()));
        if (!begun) Refuse(id, begun.error());
        break;
      }
      case LinkRequestFrame::kBodyPiece:
        TakePiece(id, frame.body_piece());
        break;
      default:
        HandleRunning(frame);
    }
  }
}

void LinkCall::HandleRunning(const LinkRequestFrame& frame) {
  if (frame.has_cancel()) bodies_.Drop(frame.stream_id());
  auto found = sinks_.find(frame.stream_id());
  if (found == sinks_.end()) return;  // its End is in flight
  if (frame.has_window_update()) found->second->Grant(frame.window_update().bytes());
  if (frame.has_cancel()) {
    auto sink = std::move(found->second);
    sinks_.erase(found);
    sink->Cancel();
  }
}

void LinkCall::TakePiece(uint64_t id, const std::string& piece) {
  if (!bodies_.Has(id)) return;  // refused; its last pieces were in flight
  auto whole = bodies_.Add(id, piece);
  if (!whole) return Refuse(id, whole.error());
  if (*whole) Start(id, std::move(**whole));
}

void LinkCall::Start(uint64_t id, GenerateRequest request) {
  if (sinks_.count(id) > 0) return;
  if (auto refused = RefusalReason(*core_, request)) return Refuse(id, *refused);
  auto sink = std::make_shared<RequestSink>(
      loop_, [this, id](Event event, int64_t bytes) { Queue(id, std::move(event), bytes); },
      &full_);
  sinks_[id] = sink;
  std::function<void()> finished = [self = shared_from_this(), id] { self->sinks_.erase(id); };
  loop_.Spawn(RunRequest(core_, std::move(request), std::move(sink), std::move(finished)));
}

void LinkCall::Refuse(uint64_t id, const Error& error) {
  CountRefusal(error);
  Event event = RefusalOf(error);
  const auto bytes = static_cast<int64_t>(event.ByteSizeLong());
  Queue(id, std::move(event), bytes);
}

void LinkCall::Queue(uint64_t id, Event event, int64_t bytes) {
  if (closed_) return;
  if (bytes > static_cast<int64_t>(kLinkPieceBytes) && pieces_) {
    QueuePieces(id, event);
  } else {
    *queue_.Add(id, bytes).mutable_event() = std::move(event);
  }
  full_ = full_ || queue_.queued_bytes() >= kMaxLinkEventBytes;
  SetUnsent(true);
  if (flush_planned_) return;
  flush_planned_ = true;
  loop_.AtEndOfTurn([self = shared_from_this()] {
    self->flush_planned_ = false;
    self->Flush();
  });
}

void LinkCall::QueuePieces(uint64_t id, const Event& event) {
  const std::string bytes = event.SerializeAsString();
  for (size_t at = 0; at < bytes.size(); at += kLinkPieceBytes) {
    const size_t size = std::min(kLinkPieceBytes, bytes.size() - at);
    auto& piece = *queue_.Add(id, static_cast<int64_t>(size)).mutable_event_piece();
    piece.mutable_bytes()->assign(bytes, at, size);
    piece.set_last(at + size == bytes.size());
  }
}

void LinkCall::Flush() {
  if (queue_.writing()) return;
  if (closed_) {
    if (!finished_) Finish(grpc::Status::OK);
    finished_ = true;
    return;
  }
  if (const LinkResponse* message = queue_.Next()) return StartWrite(message);
  SetUnsent(false);
}

void LinkCall::SetUnsent(bool unsent) {
  if (std::exchange(unsent_, unsent) != unsent) core_->unsent_links += unsent ? 1 : -1;
}

void LinkCall::WakeProducers() {
  if (!full_ || queue_.queued_bytes() >= kMaxLinkEventBytes / 2) return;
  full_ = false;
  for (auto& [id, sink] : sinks_) sink->Wake();
}

// The gateway disconnected. Cancels its requests, which abort their engine calls and settle.
void LinkCall::Close() {
  if (closed_) return;
  closed_ = true;
  SetUnsent(false);
  queue_.Clear();
  bodies_.Clear();
  auto sinks = std::move(sinks_);
  sinks_.clear();
  if (!sinks.empty()) {
    log::Warn("a gateway was lost; ending its requests and charging what was delivered",
              {{"requests", sinks.size()}});
  }
  for (auto& [id, sink] : sinks) sink->Lose();
  Flush();
}

}  // namespace tollgate::inference_router
