#include "common/rpc/health_probe.h"

#include <grpcpp/channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>

#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/rpc/call.h"

namespace tollgate::rpc {
namespace {

// HealthCheckResponse{status: NOT_SERVING}. No package provides the protocol's messages, and no
// other value matters here.
constexpr char kNotServing[] = "\x08\x02";

class HealthStub {
 public:
  explicit HealthStub(std::shared_ptr<grpc::Channel> channel) : stub_(std::move(channel)) {}
  void Check(grpc::ClientContext* context, const grpc::ByteBuffer* request,
             grpc::ByteBuffer* response, std::function<void(grpc::Status)> done) {
    stub_.UnaryCall(context, "/grpc.health.v1.Health/Check", {}, request, response,
                    std::move(done));
  }

 private:
  grpc::TemplatedGenericStub<grpc::ByteBuffer, grpc::ByteBuffer> stub_;
};

std::string TextOf(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string text;
  if (!buffer.Dump(&slices).ok()) return text;
  for (const grpc::Slice& slice : slices) {
    text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return text;
}

}  // namespace

Task<Liveness> ProbeHealth(Loop& loop, std::shared_ptr<grpc::Channel> channel, int64_t timeout_ms) {
  const int64_t end_us = SystemClock::Get().MonotonicUs() + timeout_ms * 1000;
  HealthStub stub(std::move(channel));
  const grpc::Slice empty;
  grpc::ByteBuffer request(&empty, 1);
  auto answer = co_await Unary(loop, &stub, &HealthStub::Check, std::move(request), timeout_ms);
  if (answer.ok()) {
    co_return TextOf(*answer) == kNotServing ? Liveness::kNotServing : Liveness::kServing;
  }
  if (answer.error().id != ErrorId::kServiceUnavailable) co_return Liveness::kServing;
  // The call's timer may fire slightly early.
  const bool in_time = SystemClock::Get().MonotonicUs() < end_us - 20'000;
  co_return in_time ? Liveness::kUnreachable : Liveness::kNoAnswer;
}

}  // namespace tollgate::rpc
