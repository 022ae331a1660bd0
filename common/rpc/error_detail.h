// Errors of the catalog as they travel between our processes (common/v1/error.proto), without gRPC.
#pragma once

#include "common/error/error.h"
#include "tollgate/common/v1/error.pb.h"

namespace tollgate::rpc {

// Texts are cut to what fits into a status (see error_status.h) and made valid UTF-8.
void ToDetail(const Error& error, common::v1::ErrorDetail& detail);
// A row that this build does not know becomes kServerError.
Error FromDetail(const common::v1::ErrorDetail& detail);

}  // namespace tollgate::rpc
