// Errors of the admin API. They travel as a google.rpc.Status in the status details, with an
// ErrorInfo. Programs read its reason; messages are for people.
#pragma once

#include <grpcpp/support/status.h>

#include <map>
#include <optional>
#include <string>

#include "common/base/result.h"
#include "common/error/error.h"

namespace tollgate::admin {

struct Failure {
  grpc::StatusCode code = grpc::StatusCode::INTERNAL;
  std::string reason;   // UPPER_SNAKE_CASE
  std::string message;  // may be shown to the caller
  std::string field;    // proto path of the field at fault; INVALID_ARGUMENT only
  std::map<std::string, std::string> metadata;
  int64_t retry_after_ms = 0;
  std::string internal;  // for logs only
  // Set by FromError: the error of the catalog that this failure was made from.
  std::optional<Error> error = std::nullopt;
};

template <typename T>
using AdminResult = BasicResult<T, Failure>;

Fail<Failure> InvalidField(std::string field, std::string message,
                           std::string reason = "INVALID_FIELD");
Fail<Failure> NotFound(std::string message);
// FAILED_PRECONDITION: the state of the resource forbids the call.
Fail<Failure> Precondition(std::string reason, std::string message);
// The request id was used before with another request.
Fail<Failure> RequestIdReused();
Fail<Failure> PermissionDenied(std::string reason, std::string message);
// An error of the catalog, for example of the database.
Failure FromError(const Error& error);

// OK, or the failure with its details. Texts are cut so that the whole fits into 2 KiB.
grpc::Status ToStatus(const Failure& failure);
template <typename T>
grpc::Status ToStatus(const AdminResult<T>& result) {
  return result.ok() ? grpc::Status::OK : ToStatus(result.error());
}

}  // namespace tollgate::admin
