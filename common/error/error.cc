#include "common/error/error.h"

#include <array>

namespace tollgate {
namespace {

constexpr std::array<ErrorRow, kErrorIdCount> kCatalog = {{
    {ErrorId::kBadRequest, "bad_request", 400, "bad_request", "invalid_request_error",
     "invalid_request_error", false, "The request is malformed or invalid."},
    {ErrorId::kRequestTooLarge, "request_too_large", 400, "bad_request", "invalid_request_error",
     "request_too_large", false, "The request body is too large."},
    {ErrorId::kContextLengthExceeded, "context_length_exceeded", 400, "context_length_exceeded",
     "invalid_request_error", "invalid_request_error", false,
     "The input, or the input plus max_tokens, exceeds the model's context window."},
    {ErrorId::kInvalidApiKey, "invalid_api_key", 401, "invalid_api_key", "authentication_error",
     "authentication_error", false, "The API key is missing, malformed or unknown."},
    {ErrorId::kInsufficientCredits, "insufficient_credits", 402, "insufficient_credits",
     "permission_error", "permission_error", false,
     "The workspace has no credit left, or its monthly spend cap is reached."},
    {ErrorId::kVirtualKeyBlocked, "virtual_key_blocked", 403, "virtual_key_blocked",
     "permission_error", "permission_error", false, "This API key has been deactivated."},
    {ErrorId::kModelBlocked, "model_blocked", 403, "model_blocked", "permission_error",
     "permission_error", false, "This API key is not allowed to use the model."},
    {ErrorId::kModelNotFound, "model_not_found", 404, "model_unavailable", "not_found_error",
     "not_found_error", false, "The model is not in the catalog."},
    {ErrorId::kModelNotServing, "model_not_serving", 503, "model_unavailable", "not_found_error",
     "not_found_error", true, "The model is not serving at the moment."},
    {ErrorId::kNotFound, "not_found", 404, "not_found", "not_found_error", "not_found_error", false,
     "There is no such endpoint."},
    {ErrorId::kIdempotencyInProgress, "idempotency_in_progress", 409, "idempotency_in_progress",
     "rate_limit_error", "rate_limit_error", true,
     "A request with the same Idempotency-Key is still running."},
    {ErrorId::kIdempotencyAnswerGone, "idempotency_answer_gone", 409, "idempotency_answer_gone",
     "invalid_request_error", "invalid_request_error", false,
     "A request with the same Idempotency-Key was answered, and its answer cannot be given again."},
    {ErrorId::kRateLimited, "rate_limited", 429, "rate_limited", "rate_limit_error",
     "rate_limit_error", true, "Too many requests."},
    {ErrorId::kTokenLimited, "token_limited", 429, "token_limited", "rate_limit_error",
     "rate_limit_error", true, "The token rate limit is exceeded."},
    {ErrorId::kServerError, "server_error", 500, "server_error", "server_error", "api_error", true,
     "An unexpected error occurred."},
    {ErrorId::kUpstreamError, "upstream_error", 502, "server_error", "server_error", "api_error",
     true, "The model backend failed."},
    {ErrorId::kUpstreamUnreachable, "upstream_unreachable", 502, "service_unavailable",
     "service_unavailable", "overloaded_error", true, "The model backend could not be reached."},
    {ErrorId::kServiceUnavailable, "service_unavailable", 503, "service_unavailable",
     "service_unavailable", "overloaded_error", true, "The service is temporarily unavailable."},
}};

constexpr bool RowsAreInOrder() {
  for (size_t i = 0; i < kCatalog.size(); ++i) {
    if (static_cast<size_t>(kCatalog[i].id) != i) return false;
  }
  return true;
}
static_assert(RowsAreInOrder(), "kCatalog is indexed by ErrorId");

}  // namespace

const ErrorRow& RowOf(ErrorId id) { return kCatalog[static_cast<size_t>(id)]; }

std::optional<ErrorId> ErrorIdByName(std::string_view name) {
  for (const ErrorRow& row : kCatalog) {
    if (row.name == name) return row.id;
  }
  return std::nullopt;
}

std::string Error::ToString() const {
  std::string text(row().name);
  text += ": ";
  text += public_message();
  if (!param.empty()) text += " (param " + param + ")";
  if (!internal.empty()) text += " [" + internal + "]";
  return text;
}

Fail<Error> BadRequest(std::string message, std::string param) {
  return {
      Error{.id = ErrorId::kBadRequest, .message = std::move(message), .param = std::move(param)}};
}

Fail<Error> FailWith(ErrorId id, std::string message, std::string internal) {
  return FailWith(id, Reason::kNone, std::move(message), std::move(internal));
}

Fail<Error> FailWith(ErrorId id, Reason reason, std::string message, std::string internal) {
  return {Error{
      .id = id, .message = std::move(message), .internal = std::move(internal), .reason = reason}};
}

Fail<Error> Unavailable(std::string internal, int64_t retry_after_ms) {
  return Unavailable(Reason::kNone, std::move(internal), retry_after_ms);
}

Fail<Error> Unavailable(Reason reason, std::string internal, int64_t retry_after_ms) {
  return {Error{.id = ErrorId::kServiceUnavailable,
                .retry_after_ms = retry_after_ms,
                .internal = std::move(internal),
                .reason = reason}};
}

Fail<Error> Internal(std::string internal) {
  return {Error{.id = ErrorId::kServerError, .internal = std::move(internal)}};
}

}  // namespace tollgate
