#include "common/rpc/error_detail.h"

#include <string>

#include "common/base/text.h"

namespace tollgate::rpc {
namespace {

// In bytes. Keeps the sum below the limit of 2 KiB for status details (error_status.cc). Proto
// strings must be valid UTF-8, otherwise the receiver cannot parse the message.
constexpr size_t kMaxMessage = 1000;
constexpr size_t kMaxParam = 200;
constexpr size_t kMaxInternal = 500;

}  // namespace

void ToDetail(const Error& error, common::v1::ErrorDetail& detail) {
  detail.Clear();
  detail.set_error(std::string(error.row().name));
  detail.set_message(ToValidUtf8(error.message, kMaxMessage));
  detail.set_param(ToValidUtf8(error.param, kMaxParam));
  detail.set_retry_after_ms(error.retry_after_ms);
  detail.set_internal(ToValidUtf8(error.internal, kMaxInternal));
  detail.set_reason(std::string(NameOf(error.reason)));
  const TokenAccounting& tokens = error.tokens;
  if (tokens.limit == 0 && tokens.prompt == 0 && tokens.output == 0) return;
  detail.mutable_tokens()->set_limit(tokens.limit);
  detail.mutable_tokens()->set_prompt(tokens.prompt);
  detail.mutable_tokens()->set_output(tokens.output);
  detail.mutable_tokens()->set_prompt_is_lower_bound(tokens.prompt_is_lower_bound);
}

Error FromDetail(const common::v1::ErrorDetail& detail) {
  Error error;
  if (auto id = ErrorIdByName(detail.error())) {
    error.id = *id;
    error.message = detail.message();
    error.param = detail.param();
    error.tokens = {.limit = detail.tokens().limit(),
                    .prompt = detail.tokens().prompt(),
                    .output = detail.tokens().output(),
                    .prompt_is_lower_bound = detail.tokens().prompt_is_lower_bound()};
  }
  error.retry_after_ms = detail.retry_after_ms();
  error.internal = detail.internal();
  error.reason = ReasonByName(detail.reason());
  return error;
}

}  // namespace tollgate::rpc
