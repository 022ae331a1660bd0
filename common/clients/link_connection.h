// The gRPC side of one connection attempt of a link.
#pragma once

#include <grpcpp/support/client_callback.h>

#include <condition_variable>
#include <memory>
#include <mutex>

#include "common/rpc/inbox.h"
#include "tollgate/inference/v1/inference.pb.h"

namespace tollgate {

// From gRPC's threads to the loop.
struct LinkSignal {
  enum Kind { kConnected, kMessage, kWritten, kReadEnded, kDone } kind;
  std::unique_ptr<inference::v1::LinkResponse> message;
  bool pieces = false;  // kConnected only: the router takes bodies in pieces
  grpc::Status status = {};
};

// Its callbacks only put signals into the inbox.
class LinkConnection
    : public grpc::ClientBidiReactor<inference::v1::LinkRequest, inference::v1::LinkResponse> {
 public:
  LinkConnection(grpc::ChannelInterface* channel, std::shared_ptr<Inbox<LinkSignal>> inbox);

  // Call it on the loop, or after the loop has stopped. One write at a time, and none after
  // Release.
  void Write(const inference::v1::LinkRequest* request) { StartWrite(request); }
  void Release();
  void Cancel() { context_.TryCancel(); }
  void WaitUntilDone();

 private:
  void OnReadInitialMetadataDone(bool ok) override;
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

  grpc::ClientContext context_;
  std::shared_ptr<Inbox<LinkSignal>> inbox_;
  std::unique_ptr<inference::v1::LinkResponse> message_;
  bool released_ = false;
  std::mutex mutex_;
  std::condition_variable done_signal_;
  bool done_ = false;
};

}  // namespace tollgate
