#include "tests/callers/raw_call.h"

#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>

#include <chrono>

namespace tollgate::test {
namespace {

constexpr auto kPatience = std::chrono::milliseconds(10'000);

void* Tag(int number) { return reinterpret_cast<void*>(static_cast<intptr_t>(number)); }

}  // namespace

grpc::Status RawCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& method) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  grpc::CompletionQueue queue;
  auto call = grpc::GenericStub(channel).PrepareCall(&context, "/" + method, &queue);
  void* tag = nullptr;
  bool ok = false;
  const auto next = [&] { queue.Next(&tag, &ok); };
  call->StartCall(Tag(1));
  next();
  if (ok) {
    // A default ByteBuffer would send no message at all.
    const grpc::Slice nothing;
    call->WriteLast(grpc::ByteBuffer(&nothing, 1), grpc::WriteOptions(), Tag(2));
    next();
    grpc::ByteBuffer answer;
    call->Read(&answer, Tag(3));
    next();
    if (ok) context.TryCancel();
  }
  const bool answered = ok;
  grpc::Status status;
  call->Finish(&status, Tag(4));
  next();
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
  return answered ? grpc::Status::OK : status;
}

}  // namespace tollgate::test
