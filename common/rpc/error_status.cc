#include "common/rpc/error_status.h"

namespace tollgate::rpc {
namespace {

constexpr size_t kMaxDetails = 2048;

}  // namespace

grpc::StatusCode CodeOf(const Error& error) {
  switch (error.row().http_status) {
    case 400:
      return grpc::StatusCode::INVALID_ARGUMENT;
    case 401:
      return grpc::StatusCode::UNAUTHENTICATED;
    case 402:
      return grpc::StatusCode::FAILED_PRECONDITION;
    case 403:
      return grpc::StatusCode::PERMISSION_DENIED;
    case 404:
      return grpc::StatusCode::NOT_FOUND;
    case 429:
      return grpc::StatusCode::RESOURCE_EXHAUSTED;
    case 502:
    case 503:
      return grpc::StatusCode::UNAVAILABLE;
    default:
      return grpc::StatusCode::INTERNAL;
  }
}

grpc::Status ToStatus(const Error& error) {
  common::v1::ErrorDetail detail;
  ToDetail(error, detail);
  // ToDetail stays below the limit unless the row's name is very long.
  if (detail.ByteSizeLong() > kMaxDetails) detail.clear_internal();
  return {CodeOf(error), std::string(error.row().name), detail.SerializeAsString()};
}

Error FromStatus(const grpc::Status& status) {
  common::v1::ErrorDetail detail;
  if (!status.error_details().empty() && detail.ParseFromString(status.error_details()) &&
      ErrorIdByName(detail.error())) {
    return FromDetail(detail);
  }
  Error error;
  switch (status.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::DEADLINE_EXCEEDED:
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      error.id = ErrorId::kServiceUnavailable;
      error.retry_after_ms = 1000;
      break;
    default:
      error.id = ErrorId::kServerError;
  }
  error.internal =
      "rpc status " + std::to_string(status.error_code()) + ": " + status.error_message();
  return error;
}

}  // namespace tollgate::rpc
