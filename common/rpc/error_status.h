// Errors of the catalog as gRPC statuses and back. The row travels as an ErrorDetail in the
// status's details, at most 2 KiB of them: beyond 8 KiB of metadata the peer sees
// RESOURCE_EXHAUSTED and no detail.
#pragma once

#include <grpcpp/support/status.h>

#include "common/error/error.h"
#include "common/rpc/error_detail.h"

namespace tollgate::rpc {

grpc::Status ToStatus(const Error& error);
// Only a present detail selects a row of the public catalog. A status without one means that the
// service is away (kServiceUnavailable) or has a fault (kServerError); it never blames the caller.
Error FromStatus(const grpc::Status& status);

}  // namespace tollgate::rpc
