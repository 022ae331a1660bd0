// One router target of a gateway worker: its current connection, what it has to send, and the
// running requests. Reconnects by itself.
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
    // It is open, for the first time or again.
    std::function<void()> on_connected;
    // Whether another link takes requests.
    std::function<bool()> another_open;
    // Requests that the router does not read. They belong to no holder now.
    std::function<void(std::list<LinkStreamPtr>)> on_stalled;
    // The router wants no more requests on this connection: it stops, or the connection is old.
    // was_open_ms: how long it took requests.
    std::function<void(int64_t was_open_ms)> on_draining;
  };
  // A router that takes no message for this long is passed over until it does, and requests of
  // which it has nothing go elsewhere.
  static constexpr int64_t kStallMs = 1'000;
  // After this many times as long, also those of which it has a part of the body. A message holds
  // 1 MiB: a slow network needs the time.
  static constexpr int kStallsOfBodies = 5;
  // A router that hangs (rpc::Replica::hung) gets no requests, and requests without any answer yet
  // fail at once if another router takes them. After this long the others fail, too.
  static constexpr int64_t kGiveUpMs = 4'000;

  Link(Loop& loop, Options options)
      : loop_(loop), options_(std::move(options)), outgoing_(*options_.queued_bytes) {}
  // On the loop, or after it has stopped.
  ~Link();

  // Begins to connect. Once.
  void Begin();
  // Takes no requests from now on, and does not connect again. Those that run go on.
  void Retire();
  // Whether no request runs or waits.
  bool idle() const { return streams_.empty(); }
  // Whether it accepts requests.
  bool open() const {
    return connected_ && !draining_ && !stalled_ && !retired_ && !router()->hung();
  }
  // Whether the router wants no more requests on this connection.
  bool draining() const { return draining_; }
  // Whether others are to be preferred though it is open.
  bool doubtful() const { return router()->ejected(); }
  // Whether a body of this size can be added to what waits.
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
  // Sets the event when its last piece has arrived; else returns false. May fail the request, which
  // removes it.
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
  int64_t connected_us_ = 0;  // since when
  uint64_t hangs_ = 0;
  bool flush_planned_ = false;
  bool stall_watched_ = false;
  uint64_t messages_ = 0;  // started to write, on all connections
  int stalls_ = 0;         // times kStallMs since the last message was taken
};

}  // namespace tollgate
