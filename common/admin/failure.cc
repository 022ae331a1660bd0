#include "common/admin/failure.h"

#include <google/rpc/error_details.pb.h>
#include <google/rpc/status.pb.h>

#include <utility>

#include "common/base/text.h"
#include "common/rpc/error_status.h"

namespace tollgate::admin {
namespace {

// In bytes. Keeps the sum below 2 KiB: with more than 8 KiB of metadata the peer gets
// RESOURCE_EXHAUSTED without details.
constexpr size_t kMaxMessage = 600;
constexpr size_t kMaxField = 100;
constexpr size_t kMaxMetadata = 4;

std::string Upper(std::string_view name) {
  std::string text(name);
  for (char& c : text) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return text;
}

}  // namespace

Fail<Failure> InvalidField(std::string field, std::string message, std::string reason) {
  return Fail{Failure{.code = grpc::StatusCode::INVALID_ARGUMENT,
                      .reason = std::move(reason),
                      .message = std::move(message),
                      .field = std::move(field)}};
}

Fail<Failure> NotFound(std::string message) {
  return Fail{Failure{
      .code = grpc::StatusCode::NOT_FOUND, .reason = "NOT_FOUND", .message = std::move(message)}};
}

Fail<Failure> Precondition(std::string reason, std::string message) {
  return Fail{Failure{.code = grpc::StatusCode::FAILED_PRECONDITION,
                      .reason = std::move(reason),
                      .message = std::move(message)}};
}

Fail<Failure> RequestIdReused() {
  return Fail{Failure{.code = grpc::StatusCode::ALREADY_EXISTS,
                      .reason = "REQUEST_ID_REUSED",
                      .message = "this request_id was used before with another request"}};
}

Fail<Failure> PermissionDenied(std::string reason, std::string message) {
  return Fail{Failure{.code = grpc::StatusCode::PERMISSION_DENIED,
                      .reason = std::move(reason),
                      .message = std::move(message)}};
}

Failure FromError(const Error& error) {
  return {.code = rpc::CodeOf(error),
          .reason = Upper(error.row().name),
          .message = std::string(error.public_message()),
          .field = error.param,
          .metadata = {},
          .retry_after_ms = error.retry_after_ms,
          .internal = error.internal,
          .error = error};
}

grpc::Status ToStatus(const Failure& failure) {
  google::rpc::Status status;
  status.set_code(static_cast<int>(failure.code));
  status.set_message(ToValidUtf8(failure.message, kMaxMessage));
  google::rpc::ErrorInfo info;
  info.set_reason(failure.reason);
  info.set_domain("tollgate");
  for (const auto& [key, value] : failure.metadata) {
    if (static_cast<size_t>(info.metadata_size()) == kMaxMetadata) break;
    (*info.mutable_metadata())[key] = ToValidUtf8(value, kMaxField);
  }
  status.add_details()->PackFrom(info);
  if (failure.code == grpc::StatusCode::INVALID_ARGUMENT && !failure.field.empty()) {
    google::rpc::BadRequest bad;
    auto* violation = bad.add_field_violations();
    violation->set_field(ToValidUtf8(failure.field, kMaxField));
    violation->set_description(status.message());
    status.add_details()->PackFrom(bad);
  }
  if (failure.retry_after_ms > 0) {
    google::rpc::RetryInfo retry;
    retry.mutable_retry_delay()->set_seconds(failure.retry_after_ms / 1000);
    retry.mutable_retry_delay()->set_nanos(
        static_cast<int32_t>(failure.retry_after_ms % 1000 * 1'000'000));
    status.add_details()->PackFrom(retry);
  }
  return {failure.code, status.message(), status.SerializeAsString()};
}

}  // namespace tollgate::admin
