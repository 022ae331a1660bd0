// The error catalog and Result<T>. See docs/contract.md "Errors", one row per line of its table.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/result.h"
#include "common/error/reason.h"

namespace tollgate {

enum class ErrorId : uint8_t {
  kBadRequest,       // 400 bad_request
  kRequestTooLarge,  // 400 bad_request; the Messages family has request_too_large (decision 19)
  kContextLengthExceeded,  // 400 context_length_exceeded
  kInvalidApiKey,          // 401 invalid_api_key
  kInsufficientCredits,    // 402 insufficient_credits
  kVirtualKeyBlocked,      // 403 virtual_key_blocked
  kModelBlocked,           // 403 model_blocked
  kModelNotFound,          // 404 model_unavailable: not in the catalog
  kModelNotServing,        // 503 model_unavailable: in the catalog, not serving now
  kNotFound,               // 404 not_found: no such endpoint
  kIdempotencyInProgress,  // 409 idempotency_in_progress: the first request is still running
  kIdempotencyAnswerGone,  // 409 idempotency_answer_gone: its answer cannot be given again
  kRateLimited,            // 429 rate_limited
  kTokenLimited,           // 429 token_limited
  kServerError,            // 500 server_error: an internal failure, or the engine responded 500
  kUpstreamError,          // 502 server_error: the engine responded 502 or 504, or failed
  kUpstreamUnreachable,    // 502 service_unavailable: the engine could not be reached
  kServiceUnavailable,     // 503 service_unavailable: over capacity, starting, or an internal
                           // service is unreachable
};
inline constexpr int kErrorIdCount = 18;

// One line of the catalog.
struct ErrorRow {
  ErrorId id;
  std::string_view name;  // in protos and logs, for example "model_not_serving"
  int http_status;
  std::string_view code;           // stable public slug
  std::string_view openai_type;    // error.type of the OpenAI family
  std::string_view messages_type;  // error.type of the Messages family
  bool retryable;
  std::string_view default_message;
};

const ErrorRow& RowOf(ErrorId id);
std::optional<ErrorId> ErrorIdByName(std::string_view name);

// Token counts of a request that exceeds the context window. 0: unknown.
struct TokenAccounting {
  int64_t limit = 0;
  int64_t prompt = 0;
  int64_t output = 0;
  // Set if the engine stopped counting early.
  bool prompt_is_lower_bound = false;
};

// Why a request failed. All members except `internal` and `reason` may be shown to the client.
struct Error {
  ErrorId id = ErrorId::kServerError;
  // Message for API users; empty: the row's default message. Never engine text, never a secret.
  std::string message;
  // The request field at fault; empty if none.
  std::string param;
  // Milliseconds after which a retry makes sense; 0 when unknown.
  int64_t retry_after_ms = 0;
  // For logs only.
  std::string internal;
  // Set for kContextLengthExceeded: the envelope of each family writes the message (decision 32).
  TokenAccounting tokens = {};
  // For logs, traces and metrics only. Set where the request is refused.
  Reason reason = Reason::kNone;

  const ErrorRow& row() const { return RowOf(id); }
  std::string_view public_message() const {
    return message.empty() ? row().default_message : std::string_view(message);
  }
  // "rate_limited: too many requests [internal]" for logs.
  std::string ToString() const;
  // For errors that no client sees, such as a wrong setting: `internal` alone if there is one.
  std::string Cause() const { return internal.empty() ? ToString() : internal; }
};

template <typename T>
using Result = BasicResult<T, Error>;

// The common errors, as `return BadRequest(…);`.
Fail<Error> BadRequest(std::string message, std::string param = "");
Fail<Error> FailWith(ErrorId id, std::string message = "", std::string internal = "");
Fail<Error> FailWith(ErrorId id, Reason reason, std::string message = "",
                     std::string internal = "");
Fail<Error> Unavailable(std::string internal, int64_t retry_after_ms = 1000);
Fail<Error> Unavailable(Reason reason, std::string internal, int64_t retry_after_ms = 1000);
Fail<Error> Internal(std::string internal);

}  // namespace tollgate
