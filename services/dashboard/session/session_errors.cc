#include "services/dashboard/session/session_errors.h"

#include <google/rpc/error_details.pb.h>
#include <google/rpc/status.pb.h>

#include "common/admin/failure.h"
#include "common/json/writer.h"

namespace tollgate::dashboard {
namespace {

// Same mapping as the admin API's.
int HttpStatus(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::INVALID_ARGUMENT:
    case grpc::StatusCode::FAILED_PRECONDITION:
      return 400;
    case grpc::StatusCode::UNAUTHENTICATED:
      return 401;
    case grpc::StatusCode::PERMISSION_DENIED:
      return 403;
    case grpc::StatusCode::NOT_FOUND:
      return 404;
    case grpc::StatusCode::ALREADY_EXISTS:
      return 409;
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return 429;
    case grpc::StatusCode::UNAVAILABLE:
      return 503;
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return 504;
    default:
      return 500;
  }
}

struct Parts {
  google::rpc::ErrorInfo info;
  google::rpc::BadRequest bad;
  google::rpc::RetryInfo retry;
  bool has_info = false;
};
Parts PartsOf(const grpc::Status& status) {
  Parts parts;
  google::rpc::Status detail;
  if (!detail.ParseFromString(status.error_details())) return parts;
  for (const auto& any : detail.details()) {
    if (any.UnpackTo(&parts.info)) {
      parts.has_info = true;
    } else if (!any.UnpackTo(&parts.bad)) {
      any.UnpackTo(&parts.retry);
    }
  }
  return parts;
}

}  // namespace

std::string ReasonOf(const grpc::Status& status) {
  const Parts parts = PartsOf(status);
  return parts.has_info ? parts.info.reason() : "UNAVAILABLE";
}

RenderedStatus Render(const grpc::Status& status) {
  Parts parts = PartsOf(status);
  grpc::StatusCode code = status.error_code();
  std::string message = status.error_message();
  if (!parts.has_info) {
    // An error of gRPC itself; its text is for logs.
    code = grpc::StatusCode::UNAVAILABLE;
    message = "The sign-in service does not answer; try again.";
    parts.info.set_reason("UNAVAILABLE");
    parts.info.set_domain("tollgate");
  }
  json::Writer metadata;
  for (const auto& [key, value] : parts.info.metadata()) metadata.Text(key, value);
  std::string details = "[" + json::Writer()
                                  .Text("@type", "type.googleapis.com/google.rpc.ErrorInfo")
                                  .Text("reason", parts.info.reason())
                                  .Text("domain", parts.info.domain())
                                  .Raw("metadata", metadata.Done())
                                  .Done();
  if (parts.bad.field_violations_size() > 0) {
    const std::string violations =
        json::WriteArray(parts.bad.field_violations(), [](const auto& violation) {
          return json::Writer()
              .Text("field", violation.field())
              .Text("description", violation.description())
              .Done();
        });
    details += "," + json::Writer()
                         .Text("@type", "type.googleapis.com/google.rpc.BadRequest")
                         .Raw("fieldViolations", violations)
                         .Done();
  }
  RenderedStatus rendered;
  rendered.http_status = HttpStatus(code);
  rendered.message = message;
  rendered.body = json::Writer()
                      .Number("code", code)
                      .Text("message", message)
                      .Raw("details", details + "]")
                      .Done();
  const auto& delay = parts.retry.retry_delay();
  rendered.retry_after_seconds = delay.seconds() + (delay.nanos() > 0 ? 1 : 0);
  return rendered;
}

grpc::Status MakeStatus(grpc::StatusCode code, const char* reason, const char* message) {
  return admin::ToStatus(admin::Failure{.code = code, .reason = reason, .message = message});
}

}  // namespace tollgate::dashboard
