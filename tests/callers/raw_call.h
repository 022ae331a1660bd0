// Calls a method by its name, with an empty message.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/support/status.h>

#include <memory>
#include <string>

namespace tollgate::test {

// Returns the status of a unary call. A stream returns OK as soon as the server has sent a message,
// and DEADLINE_EXCEEDED when the server admits it but sends nothing.
grpc::Status RawCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& method);

}  // namespace tollgate::test
