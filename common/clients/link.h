// One router target of a gateway worker: its current connection, its send queue and its running
// requests. Reconnects by itself.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <unordered_map>
#include <vector>

#include "common/clients/link_connection.h"
#include "common/clients/link_outgoing.h"
#include "common/clients/link_stream.h"
#include "common/rpc/replica.h"
#include "common/runtime/loop.h"

namespace tollgate {

// Lives on one loop.
class Link final : public LinkStreamHolder {
 public:
  struct Options {
    std::shared_ptr<rpc::Replica> router;
    std::shared_ptr<prometheus::Gauge> queued_bytes;
    // The link is open, for the first time or again.
    std::function<void()> on_connected;
    // Whether another link takes requests.
    std::function<bool()> another_open;
    // Requests that the router does not read. They no longer have a holder.
    std::function<void(std::list<LinkStreamPtr>)> on_stalled;
    // The router refuses further requests on this connection: it is stopping, or the connection is
    // old. was_open_ms: how long the link was open.
    std::function<void(int64_t was_open_ms)> on_draining;
  };
  // A router that accepts no message for this long gets no new requests until it does. Requests
  // that it has not begun to receive move to another router.
  static constexpr int64_t kStallMs = 1'000;
  // After this many kStallMs, requests with a partly sent body move, too. A message holds up to 1
  // MiB, which takes time on a slow network.
  static constexpr int kStallsOfBodies = 5;
  // A router that hangs (rpc::Replica::hung) gets no requests, and requests without any answer fail
  // at once if another router takes requests. After this time the others fail, too.
  static constexpr int64_t kGiveUpMs = 4'000;

  Link(Loop& loop, Options options)
      : loop_(loop), options_(std::move(options)), outgoing_(*options_.queued_bytes) {}
  // Destroy it on the loop, or after the loop has stopped.
  ~Link();

  // Starts to connect. Call it once.
  void Begin();
  // Stops taking requests and reconnecting. Running requests continue.
  void Retire();
  // Whether no request runs or waits.
  bool idle() const { return streams_.empty(); }
  // Whether it accepts requests.
  bool open() const {
    return connected_ && !draining_ && !stalled_ && !retired_ && !router()->hung();
  }
  // Whether the router refuses further requests on this connection.
  bool draining() const { return draining_; }
  // Whether other links are preferred although this one is open.
  bool doubtful() const { return router()->ejected(); }
  // Whether the send queue has room for a body of this size.
  bool Fits(size_t body_bytes) const;
  const std::shared_ptr<rpc::Replica>& router() const { return options_.router; }
  int64_t queued_bytes() const { return outgoing_.queued_bytes(); }

  void Start(const LinkStreamPtr& stream, uint64_t id);
  void Cancel(LinkStream& stream) override;
  void Grant(LinkStream& stream, int64_t bytes) override;

 private:
  void Connect();
  void OnHealth();
  void FailUnanswered();
  void PlanFlush();
  void Flush();
  void WatchForStall();
  void OnStall();
  void PlaceElsewhere(bool with_bodies);
  void Take(std::vector<LinkSignal> signals);
  void Deliver(inference::v1::LinkResponse& message);
  // Returns true and sets the event when its last piece has arrived. May fail the request and
  // remove it.
  bool TakePiece(LinkStream& stream, const inference::v1::EventPiece& piece,
                 inference::v1::Event& event);
  void Fail(LinkStream& stream, Error error);
  void FailStreams();
  void Reconnect(const grpc::Status& status);
  void Disconnect();

  Loop& loop_;
  const Options options_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::shared_ptr<Inbox<LinkSignal>> inbox_;
  std::unique_ptr<LinkConnection> connection_;
  LinkOutgoing outgoing_;
  std::unordered_map<uint64_t, LinkStreamPtr> streams_;
  bool connected_ = false;
  bool draining_ = false;  // the router refuses new requests; running ones continue
  bool stalled_ = false;
  bool retired_ = false;
  bool was_hung_ = false;
  int64_t connected_us_ = 0;  // when the link last opened
  uint64_t hangs_ = 0;
  bool flush_planned_ = false;
  bool stall_watched_ = false;
  uint64_t messages_ = 0;  // writes started, on all connections
  int stalls_ = 0;         // multiples of kStallMs since a message was last accepted
};

}  // namespace tollgate
