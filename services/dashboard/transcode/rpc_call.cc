#include "services/dashboard/transcode/rpc_call.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>

#include <atomic>
#include <map>
#include <utility>

#include "common/runtime/notify.h"

namespace tollgate::transcode {
namespace {

Metadata Copied(const std::multimap<grpc::string_ref, grpc::string_ref>& from) {
  Metadata metadata;
  for (const auto& [key, value] : from) {
    metadata.emplace_back(std::string(key.data(), key.size()),
                          std::string(value.data(), value.size()));
  }
  return metadata;
}

}  // namespace

// Callbacks of gRPC only post to the loop, which owns all other state. At most one read is pending,
// so a slow reader slows the service down.
struct RpcCall::State : grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
  explicit State(Loop& loop) : outside(std::make_unique<OutsideWork>(loop)), changed(loop) {}

  void OnReadDone(bool ok) override {
    if (!ok) return Release();
    outside->loop().Post([self = self] {
      self->has_response = true;
      self->changed.NotifyAll();
    });
  }
  void OnDone(const grpc::Status& end) override {
    // Destroyed on the loop, together with its channel (docs/design/toolchain.md 2).
    std::unique_ptr<OutsideWork> last = std::move(outside);
    last->loop().Post([self = std::move(self), end] {
      self->status = end;
      self->ended = true;
      self->changed.NotifyAll();
    });
  }
  // Lets the call end. The hold is needed because reads are started from the loop.
  void Release() {
    if (!released.exchange(true)) RemoveHold();
  }

  std::unique_ptr<OutsideWork> outside;  // until OnDone
  std::shared_ptr<State> self;           // until OnDone
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<grpc::GenericStub> stub;
  grpc::ClientContext context;
  grpc::ByteBuffer request, response;
  std::atomic<bool> released{false};
  // Used on the loop only.
  Notify changed;
  bool has_response = false;
  bool ended = false;
  grpc::Status status;
};

RpcCall::RpcCall(Loop& loop, Options options) : state_(std::make_shared<State>(loop)) {
  State& state = *state_;
  state.self = state_;
  state.channel = std::move(options.channel);
  state.stub = std::make_unique<grpc::GenericStub>(state.channel);
  state.request = std::move(options.request);
  for (const auto& [key, value] : options.metadata) state.context.AddMetadata(key, value);
  state.context.set_deadline(options.deadline);
  state.stub->PrepareBidiStreamingCall(&state.context, options.method, {}, &state);
  state.AddHold();
  state.StartWriteLast(&state.request, grpc::WriteOptions());
  state.StartRead(&state.response);
  state.StartCall();
}

RpcCall::~RpcCall() {
  if (state_->ended) return;
  state_->context.TryCancel();
  state_->Release();
}

Task<bool> RpcCall::Next(grpc::ByteBuffer* response) {
  const std::shared_ptr<State> state = state_;
  while (!state->has_response && !state->ended) {
    if (!co_await state->changed.Wait()) co_return false;
  }
  if (!state->has_response) co_return false;
  state->has_response = false;
  response->Swap(&state->response);
  state->response.Clear();
  state->StartRead(&state->response);
  co_return true;
}

void RpcCall::Cancel() { state_->context.TryCancel(); }

Metadata RpcCall::headers() const { return Copied(state_->context.GetServerInitialMetadata()); }
const grpc::Status& RpcCall::status() const { return state_->status; }
Metadata RpcCall::trailers() const { return Copied(state_->context.GetServerTrailingMetadata()); }

}  // namespace tollgate::transcode
