#include "common/clients/link_outgoing.h"

#include <algorithm>
#include <utility>

#include "common/rpc/link_protocol.h"

namespace tollgate {

using inference::v1::LinkRequest;
using inference::v1::LinkRequestFrame;
using Stage = LinkStream::Stage;

bool LinkOutgoing::IsLarge(const LinkStream& stream) const {
  return pieces_ && stream.request.members_json().size() > kLinkPieceBytes;
}

std::list<LinkStreamPtr>& LinkOutgoing::ListOf(const LinkStream& stream) {
  if (stream.stage == Stage::kSendingBody) return bodies_;
  return IsLarge(stream) ? large_ : starts_;
}

void LinkOutgoing::Start(const LinkStreamPtr& stream) {
  queued_.Add(stream->waiting_bytes());
  auto& list = ListOf(*stream);
  stream->place = list.insert(list.end(), stream);
}

LinkRequestFrame& LinkOutgoing::Add(uint64_t stream_id) {
  LinkRequestFrame& frame = frames_.emplace_back();
  frame.set_stream_id(stream_id);
  return frame;
}

bool LinkOutgoing::Drop(LinkStream& stream) {
  const bool known = stream.stage != Stage::kQueued;
  if (stream.stage == Stage::kSent) return known;
  queued_.Add(-stream.waiting_bytes());
  ListOf(stream).erase(stream.place);
  stream.FreeRequest();
  return known;
}

std::list<LinkStreamPtr> LinkOutgoing::TakeUnsent(bool begun) {
  std::list<LinkStreamPtr> unsent;
  if (begun) unsent.splice(unsent.end(), bodies_);
  for (const LinkStreamPtr& stream : unsent) Add(stream->id).mutable_cancel();
  unsent.splice(unsent.end(), starts_);
  unsent.splice(unsent.end(), large_);
  for (const LinkStreamPtr& stream : unsent) {
    queued_.Add(-stream->waiting_bytes());
    stream->stage = Stage::kQueued;
    stream->body_sent = 0;
  }
  return unsent;
}

const LinkRequest* LinkOutgoing::Next() {
  if (writing_ || (frames_.empty() && !has_unsent())) return nullptr;
  size_t bytes = 0;
  for (; !frames_.empty() && bytes < kLinkMessageBytes; frames_.pop_front()) {
    bytes += frames_.front().ByteSizeLong();
    *message_.add_frames() = std::move(frames_.front());
  }
  while (!large_.empty() && bodies_.size() < kBodiesInTurn) bytes += BeginBody();
  // Half of a message is reserved for waiting bodies, so that neither they nor new requests starve.
  const size_t for_starts = bodies_.empty() ? kLinkMessageBytes : kLinkMessageBytes / 2;
  while (!starts_.empty() && bytes < for_starts) bytes += WriteStart();
  while (!bodies_.empty() && bytes < kLinkMessageBytes) bytes += WritePiece();
  writing_ = true;
  return &message_;
}

size_t LinkOutgoing::WriteStart() {
  const LinkStreamPtr stream = std::move(starts_.front());
  starts_.pop_front();
  const auto bytes = stream->waiting_bytes();
  LinkRequestFrame& frame = *message_.add_frames();
  frame.set_stream_id(stream->id);
  *frame.mutable_start() = std::move(stream->request);
  stream->FreeRequest();
  stream->stage = Stage::kSent;
  stream->sent = true;
  writing_bytes_ += bytes;
  return static_cast<size_t>(bytes);
}

size_t LinkOutgoing::BeginBody() {
  const LinkStreamPtr& stream = large_.front();
  LinkRequestFrame& frame = *message_.add_frames();
  frame.set_stream_id(stream->id);
  std::string& body = *stream->request.mutable_members_json();
  auto& start = *frame.mutable_start_in_pieces();
  start.set_body_bytes(static_cast<int64_t>(body.size()));
  // Copies everything except the body.
  std::string kept = std::exchange(body, std::string());
  *start.mutable_request() = stream->request;
  body = std::move(kept);
  stream->stage = Stage::kSendingBody;
  bodies_.splice(bodies_.end(), large_, large_.begin());
  writing_bytes_ += LinkStream::kRequestBytes;
  return LinkStream::kRequestBytes;
}

size_t LinkOutgoing::WritePiece() {
  LinkStream& stream = *bodies_.front();
  const std::string& body = stream.request.members_json();
  const size_t bytes = std::min(kLinkPieceBytes, body.size() - stream.body_sent);
  LinkRequestFrame& frame = *message_.add_frames();
  frame.set_stream_id(stream.id);
  frame.mutable_body_piece()->assign(body, stream.body_sent, bytes);
  stream.body_sent += bytes;
  writing_bytes_ += static_cast<int64_t>(bytes);
  if (stream.body_sent == body.size()) {
    stream.FreeRequest();
    stream.stage = Stage::kSent;
    stream.sent = true;
    bodies_.pop_front();
  } else {
    bodies_.splice(bodies_.end(), bodies_, bodies_.begin());
  }
  return bytes;
}

void LinkOutgoing::Written() {
  message_.Clear();
  queued_.Add(-std::exchange(writing_bytes_, 0));
  writing_ = false;
}

void LinkOutgoing::Clear() {
  frames_.clear();
  starts_.clear();
  large_.clear();
  bodies_.clear();
  queued_.Add(writing_bytes_ - queued_.bytes());  // held by gRPC
}

}  // namespace tollgate
