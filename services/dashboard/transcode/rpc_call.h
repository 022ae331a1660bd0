// One call of any method, with serialised messages: a request, and none, one or many responses.
#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>

#include <chrono>
#include <memory>
#include <string>

#include "common/runtime/loop.h"
#include "services/dashboard/transcode/headers.h"

namespace grpc {
class Channel;
}

namespace tollgate::transcode {

// Lives on one loop. Destroying it cancels the call.
class RpcCall {
 public:
  struct Options {
    std::shared_ptr<grpc::Channel> channel;
    std::string method;  // "/package.Service/Method"
    grpc::ByteBuffer request;
    Metadata metadata;  // valid keys and values
    std::chrono::system_clock::time_point deadline;
  };
  RpcCall(Loop& loop, Options options);
  ~RpcCall();
  RpcCall(const RpcCall&) = delete;
  RpcCall& operator=(const RpcCall&) = delete;

  // Waits for the next response. False: there are no more, and status() is known.
  Task<bool> Next(grpc::ByteBuffer* response);
  // The call ends with CANCELLED unless it has ended.
  void Cancel();

  // After Next has returned: what the service sent before its first response.
  Metadata headers() const;
  // After Next has returned false.
  const grpc::Status& status() const;
  Metadata trailers() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tollgate::transcode
