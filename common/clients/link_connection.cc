#include "common/clients/link_connection.h"

#include <grpcpp/channel.h>

#include <utility>

#include "common/rpc/link_protocol.h"
#include "tollgate/inference/v1/inference.grpc.pb.h"

namespace tollgate {

using inference::v1::InferenceService;
using inference::v1::LinkResponse;

LinkConnection::LinkConnection(grpc::ChannelInterface* channel,
                               std::shared_ptr<Inbox<LinkSignal>> inbox)
    : inbox_(std::move(inbox)) {
  InferenceService::Stub stub(std::shared_ptr<grpc::ChannelInterface>(channel, [](auto*) {}));
  context_.AddMetadata(kLinkPiecesKey, "1");
  stub.async()->Link(&context_, this);
  AddHold();  // the loop starts writes outside gRPC's callbacks
  message_ = std::make_unique<LinkResponse>();
  StartRead(message_.get());
  StartCall();
}

void LinkConnection::Release() {
  if (!released_) RemoveHold();
  released_ = true;
}

void LinkConnection::WaitUntilDone() {
  std::unique_lock lock(mutex_);
  done_signal_.wait(lock, [this] { return done_; });
}

void LinkConnection::OnReadInitialMetadataDone(bool ok) {
  if (!ok) return;
  const bool pieces = context_.GetServerInitialMetadata().count(kLinkPiecesKey) > 0;
  inbox_->Put({LinkSignal::kConnected, nullptr, pieces});
}

void LinkConnection::OnReadDone(bool ok) {
  if (!ok) return inbox_->Put({LinkSignal::kReadEnded, nullptr});
  inbox_->Put({LinkSignal::kMessage, std::move(message_)});
  message_ = std::make_unique<LinkResponse>();
  StartRead(message_.get());
}

void LinkConnection::OnWriteDone(bool ok) {
  if (ok) inbox_->Put({LinkSignal::kWritten, nullptr});  // a failed write also ends the read
}

void LinkConnection::OnDone(const grpc::Status& status) {
  inbox_->Put({LinkSignal::kDone, nullptr, false, status});
  std::lock_guard lock(mutex_);
  done_ = true;
  done_signal_.notify_all();
}

}  // namespace tollgate
