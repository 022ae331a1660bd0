#include "common/json/json.h"
#include "gateway/envelopes/stream_error.h"

namespace tollgate::gateway {

namespace {

// Our own catalog's code where the published list knows nothing like it: clients take any string.
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
  std::string out = "{\"code\":";
  json::AppendQuoted(out, PublishedCode(error));
  out += ",\"message\":";
  json::AppendQuoted(out, json::IsValidUtf8(message) ? message : std::string_view("invalid text"));
  return out + "}";
}

}  // namespace tollgate::gateway
