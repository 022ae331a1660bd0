// Router ends of the token stream that do less than the real one: a router that reads nothing, or
// one that takes each request immediately and answers with the number of its bytes. On request,
// both behave like a version without requests in pieces.
#pragma once

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "common/rpc/link_protocol.h"
#include "tollgate/inference/v1/inference.grpc.pb.h"

namespace tollgate::inference_router::testing {

class SilentRouter : public inference::v1::InferenceService::Service {
 public:
  enum class Does { kReadNothing, kTellBodyBytes };

  explicit SilentRouter(Does does, bool pieces = true) : does_(does), pieces_(pieces) {
    grpc::ServerBuilder builder;
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    // With the probe gRPC would accept more and more bytes that nobody reads.
    builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.SetMaxReceiveMessageSize(64 << 20);  // as in versions without pieces
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~SilentRouter() override { server_->Shutdown(std::chrono::system_clock::now()); }

  std::string target() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  using Stream = grpc::ServerReaderWriter<inference::v1::LinkResponse, inference::v1::LinkRequest>;

  grpc::Status Link(grpc::ServerContext* context, Stream* stream) override {
    if (pieces_) context->AddInitialMetadata(kLinkPiecesKey, "1");
    stream->SendInitialMetadata();
    inference::v1::LinkRequest message;
    while (does_ == Does::kReadNothing && !context->IsCancelled()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    while (does_ == Does::kTellBodyBytes && stream->Read(&message)) {
      for (const auto& frame : message.frames()) Answer(frame, *stream);
    }
    return grpc::Status::OK;
  }
  static void Answer(const inference::v1::LinkRequestFrame& frame, Stream& stream) {
    if (!frame.has_start()) return;
    inference::v1::LinkResponse response;
    auto* text = response.add_frames();
    text->set_stream_id(frame.stream_id());
    text->mutable_event()->mutable_delta()->set_content_json(
        std::to_string(frame.start().members_json().size()));
    auto* end = response.add_frames();
    end->set_stream_id(frame.stream_id());
    end->mutable_event()->mutable_end();
    stream.Write(response);
  }

  const Does does_;
  const bool pieces_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace tollgate::inference_router::testing
