#include "gateway/envelopes/response_error.h"

#include <string_view>

#include "common/base/text.h"
#include "common/json/writer.h"

namespace tollgate::gateway {

namespace {

// Falls back to the code of the error catalog where the published list has no equivalent: clients
// accept any string.
// string.
std::string_view PublishedCode(const Error& error) {
  switch (error.id) {
    case ErrorId::kBadRequest:
    case ErrorId::kRequestTooLarge:
      return "invalid_prompt";
    case ErrorId::kRateLimited:
    case ErrorId::kTokenLimited:
      return "rate_limit_exceeded";
    case ErrorId::kModelNotServing:
    case ErrorId::kServerError:
    case ErrorId::kUpstreamError:
    case ErrorId::kUpstreamUnreachable:
    case ErrorId::kServiceUnavailable:
      return "server_error";
    default:
      return error.row().code;
  }
}

}  // namespace

std::string ResponseError(const Error& error) {
  const std::string_view message = error.public_message();
  return json::Writer()
      .Text("code", PublishedCode(error))
      .Text("message", IsValidUtf8(message) ? message : std::string_view("invalid text"))
      .Done();
}

}  // namespace tollgate::gateway
