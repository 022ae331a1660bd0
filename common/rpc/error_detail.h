// Converts errors of the catalog to and from the message of common/v1/error.proto, without gRPC.
#pragma once

#include "common/error/error.h"
#include "tollgate/common/v1/error.pb.h"

namespace tollgate::rpc {

// Texts are truncated to fit into a gRPC status (error_status.h) and made valid UTF-8.
void ToDetail(const Error& error, common::v1::ErrorDetail& detail);
// An unknown row becomes kServerError, an unknown reason kNone.
Error FromDetail(const common::v1::ErrorDetail& detail);

}  // namespace tollgate::rpc
