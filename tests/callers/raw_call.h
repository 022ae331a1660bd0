// Calls a method by its name, with an empty message.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/support/status.h>

#include <memory>
#include <string>

namespace tollgate::test {

// Unary or streaming: the status, or OK as soon as the server has sent a message. A stream that is
// let in but says nothing ends with DEADLINE_EXCEEDED.
grpc::Status RawCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& method);

}  // namespace tollgate::test
