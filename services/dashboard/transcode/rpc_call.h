// A call of any method, with serialized messages: one request and any number of responses.
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

  // Waits for the next response. False: there are no more, and status() is final.
  Task<bool> Next(grpc::ByteBuffer* response);
  // Ends the call with CANCELLED unless it has already ended.
  void Cancel();

  // Valid after Next has returned: what the service sent before its first response.
  Metadata headers() const;
  // Valid after Next has returned false.
  const grpc::Status& status() const;
  Metadata trailers() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tollgate::transcode
