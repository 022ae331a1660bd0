// The send queue of a link: new requests, the rest of large bodies, and small frames. A message is
// built when gRPC can write it, so each body is stored once, however slowly the router reads.
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
  // Adds a frame that is not part of a request.
  inference::v1::LinkRequestFrame& Add(uint64_t stream_id);
  // Drops the part of the request that is not in a message yet. Returns whether the router knows
  // the request.
  bool Drop(LinkStream& stream);
  // Takes the requests that the router has not begun to receive, for another link. begun: also
  // those with a partly sent body; the router is told to forget them.
  std::list<LinkStreamPtr> TakeUnsent(bool begun);

  // The next message to write; null while one is being written or if nothing waits. The message
  // does not change until Written is called.
  const inference::v1::LinkRequest* Next();
  void Written();
  bool writing() const { return writing_; }
  bool has_unsent() const { return !starts_.empty() || !large_.empty() || !bodies_.empty(); }
  // Call it when the connection is lost. The streams keep their requests.
  void Clear();

  // Bytes of requests that wait or are being written.
  int64_t queued_bytes() const { return queued_.bytes(); }

 private:
  // More bodies at a time would only delay each of them at the router.
  static constexpr size_t kBodiesInTurn = 8;

  bool IsLarge(const LinkStream& stream) const;
  std::list<LinkStreamPtr>& ListOf(const LinkStream& stream);
  size_t WriteStart();
  size_t BeginBody();
  size_t WritePiece();

  std::deque<inference::v1::LinkRequestFrame> frames_;
  std::list<LinkStreamPtr> starts_;  // sent in one frame each
  std::list<LinkStreamPtr> large_;   // sent in pieces, not begun
  std::list<LinkStreamPtr> bodies_;  // sent in pieces, one piece each in turn
  inference::v1::LinkRequest message_;
  metrics::CoarseGauge queued_;
  int64_t writing_bytes_ = 0;
  bool writing_ = false;
  bool pieces_ = false;
};

}  // namespace tollgate
