// Converts errors of the catalog to gRPC statuses and back. The error is an ErrorDetail in the
// status details, which are limited to 2 KiB: with more than 8 KiB of metadata the peer receives
// RESOURCE_EXHAUSTED without details.
#pragma once

#include <grpcpp/support/status.h>

#include "common/error/error.h"
#include "common/rpc/error_detail.h"

namespace tollgate::rpc {

// The status code of an error of the catalog, by its HTTP status.
grpc::StatusCode CodeOf(const Error& error);
grpc::Status ToStatus(const Error& error);
// Only an ErrorDetail selects any row of the catalog. A status without one is kServiceUnavailable
// (the service is unreachable) or kServerError, never an error of the client.
Error FromStatus(const grpc::Status& status);

}  // namespace tollgate::rpc
