// What one link has to send: new requests, the rest of large bodies, and small frames. A message is
// made of them when gRPC can write it, so a body is stored once however slowly the router reads.
#pragma once

#include <cstdint>
#include <deque>
#include <list>

#include "common/clients/link_stream.h"
#include "common/observability/coarse_gauge.h"
#include "tollgate/inference/v1/inference.pb.h"

namespace tollgate {

// Lives on one loop.
class LinkOutgoing {
 public:
  explicit LinkOutgoing(prometheus::Gauge& gauge) : queued_(gauge) {}

  // Whether the router of this connection takes bodies in pieces.
  void set_pieces(bool pieces) { pieces_ = pieces; }
  bool pieces() const { return pieces_; }

  void Start(const LinkStreamPtr& stream);
  // A frame that is not part of a request.
  inference::v1::LinkRequestFrame& Add(uint64_t stream_id);
  // Forgets what of the request is not yet in a message. Returns whether the router knows of it.
  bool Drop(LinkStream& stream);
  // Takes the requests of which the router has nothing, for another link; with begun, also those of
  // which it has a part of the body, which it is told to forget.
  std::list<LinkStreamPtr> TakeUnsent(bool begun);

  // The next message to write; null while one is being written or if nothing waits. Not changed
  // before Written is called.
  const inference::v1::LinkRequest* Next();
  void Written();
  bool writing() const { return writing_; }
  bool has_unsent() const { return !starts_.empty() || !large_.empty() || !bodies_.empty(); }
  // The connection is lost. The streams keep their requests.
  void Clear();

  // Bytes of requests that wait or are being written.
  int64_t queued_bytes() const { return queued_.bytes(); }

 private:
  // More bodies at a time would only make each of them wait longer at the router.
  static constexpr size_t kBodiesInTurn = 8;

  bool IsLarge(const LinkStream& stream) const;
  std::list<LinkStreamPtr>& ListOf(const LinkStream& stream);
  size_t WriteStart();
  size_t BeginBody();
  size_t WritePiece();

  std::deque<inference::v1::LinkRequestFrame> frames_;
  std::list<LinkStreamPtr> starts_;  // in one frame
  std::list<LinkStreamPtr> large_;   // in pieces, not begun
  std::list<LinkStreamPtr> bodies_;  // one piece each in turn
  inference::v1::LinkRequest message_;
  metrics::CoarseGauge queued_;
  int64_t writing_bytes_ = 0;
  bool writing_ = false;
  bool pieces_ = false;
};

}  // namespace tollgate
