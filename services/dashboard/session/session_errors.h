// Errors of SessionService as JSON, in the form of the admin API's errors.
#pragma once

#include <grpcpp/support/status.h>

#include <cstdint>
#include <string>

namespace tollgate::dashboard {

struct RenderedStatus {
  int http_status = 500;
  std::string message;  // for people
  std::string body;
  int64_t retry_after_seconds = 0;
};
RenderedStatus Render(const grpc::Status& status);

// Reason in the status's ErrorInfo; otherwise "UNAVAILABLE".
std::string ReasonOf(const grpc::Status& status);

grpc::Status MakeStatus(grpc::StatusCode code, const char* reason, const char* message);

}  // namespace tollgate::dashboard
