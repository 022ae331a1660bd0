// Converts errors of the catalog to gRPC statuses and back. The error travels as an ErrorDetail in
// the status details. These are limited to 2 KiB: with more than 8 KiB of metadata the peer
// receives RESOURCE_EXHAUSTED without details.
#pragma once

#include <grpcpp/support/status.h>

#include "common/error/error.h"
#include "common/rpc/error_detail.h"

namespace tollgate::rpc {

// The gRPC status code for an error of the catalog, chosen by its HTTP status.
grpc::StatusCode CodeOf(const Error& error);
grpc::Status ToStatus(const Error& error);
// Returns any row of the catalog only for a status with an ErrorDetail. Any other status is
// kServiceUnavailable (the service is unreachable) or kServerError, never a client error.
Error FromStatus(const grpc::Status& status);

}  // namespace tollgate::rpc
