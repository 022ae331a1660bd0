// One Link call, with the requests of one gateway worker.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "common/rpc/inbox.h"
#include "common/rpc/link_queue.h"
#include "services/inference_router/rpc/incoming_bodies.h"
#include "services/inference_router/rpc/link_request.h"

namespace tollgate::inference_router {

class LinkCall;

// Shared by the service and its calls.
struct LinkCore : RequestCore {
  LinkCore(LoopPool& loops, GenerateHandler handler, BodyLimits limits, int64_t max_link_age_ms)
      : RequestCore(std::move(handler), limits), loops(loops), max_link_age_ms(max_link_age_ms) {}
  LoopPool& loops;
  const int64_t max_link_age_ms;
  std::mutex mutex;
  std::vector<std::weak_ptr<LinkCall>> links;  // under the mutex
};

// gRPC's callbacks put signals into the inbox; everything else runs on the loop. Keeps itself alive
// until OnDone, and until the last request of the link has ended.
class LinkCall
    : public grpc::ServerBidiReactor<inference::v1::LinkRequest, inference::v1::LinkResponse>,
      public std::enable_shared_from_this<LinkCall> {
 public:
  // pieces: the gateway accepts events in pieces.
  LinkCall(std::shared_ptr<LinkCore> core, Loop& loop, bool pieces);

  void Begin();
  // Asks the gateway to send no more requests on this link. Callable on any thread.
  void AnnounceDrain();

 private:
  struct Signal {
    enum Kind { kMessage, kWritten, kReadEnded, kDone } kind;
    std::unique_ptr<inference::v1::LinkRequest> message;
  };

  // Called on gRPC's threads.
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool) override { inbox_->Put({Signal::kWritten, nullptr}); }
  void OnCancel() override { inbox_->Put({Signal::kReadEnded, nullptr}); }
  void OnDone() override { inbox_->Put({Signal::kDone, nullptr}); }

  // Everything below runs on the loop.
  void Take(std::vector<Signal> signals);
  void Handle(inference::v1::LinkRequest& message);
  void HandleRunning(const inference::v1::LinkRequestFrame& frame);
  void TakePiece(uint64_t id, const std::string& piece);
  void Start(uint64_t id, inference::v1::GenerateRequest request);
  void Refuse(uint64_t id, const Error& error);
  void Queue(uint64_t id, inference::v1::Event event, int64_t bytes);
  void QueuePieces(uint64_t id, const inference::v1::Event& event);
  void Flush();
  void SetUnsent(bool unsent);
  void WakeProducers();
  void Close();

  const std::shared_ptr<LinkCore> core_;
  Loop& loop_;
  const bool pieces_;
  std::shared_ptr<LinkCall> self_;
  std::shared_ptr<Inbox<Signal>> inbox_;
  std::unique_ptr<inference::v1::LinkRequest> message_;
  // Messages that were read and not yet handled. At kMaxUnreadMessages the next read waits for the
  // loop.
  std::atomic<int> unread_{0};
  LinkQueue<inference::v1::LinkResponse, inference::v1::LinkResponseFrame> queue_;
  IncomingBodies bodies_;
  std::unordered_map<uint64_t, std::shared_ptr<RequestSink>> sinks_;
  bool full_ = false;  // producers wait until half of kMaxLinkEventBytes is written
  bool flush_planned_ = false;
  bool unsent_ = false;  // counted in core_->unsent_links
  bool closed_ = false;
  bool finished_ = false;
};

}  // namespace tollgate::inference_router
