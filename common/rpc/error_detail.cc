#include "common/rpc/error_detail.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace tollgate::rpc {
namespace {

// Bytes. Together below the 2 KiB that details may have (error_status.cc).
constexpr size_t kMaxMessage = 1000;
constexpr size_t kMaxParam = 200;
constexpr size_t kMaxInternal = 500;

// Length of the well-formed UTF-8 character at the start of text; 0 when there is none.
size_t CharacterLength(std::string_view text) {
  auto byte = static_cast<uint8_t>(text[0]);
  if (byte < 0x80) return 1;
  size_t length = byte >= 0xC2 && byte <= 0xDF   ? 2
                  : byte >= 0xE0 && byte <= 0xEF ? 3
                  : byte >= 0xF0 && byte <= 0xF4 ? 4
                                                 : 0;
  if (length == 0 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((static_cast<uint8_t>(text[i]) & 0xC0) != 0x80) return 0;
  }
  auto second = static_cast<uint8_t>(text[1]);
  bool overlong = (byte == 0xE0 && second < 0xA0) || (byte == 0xF0 && second < 0x90);
  bool surrogate = byte == 0xED && second > 0x9F;
  bool too_high = byte == 0xF4 && second > 0x8F;
  return overlong || surrogate || too_high ? 0 : length;
}

// Proto strings must be UTF-8, or the receiver can not read the message at all.
std::string Clean(std::string_view text, size_t limit) {
  std::string out;
  while (!text.empty()) {
    size_t length = CharacterLength(text);
    if (out.size() + (length == 0 ? 1 : length) > limit) break;
    if (length == 0) {
      out += '?';
      text.remove_prefix(1);
    } else {
      out.append(text.substr(0, length));
      text.remove_prefix(length);
    }
  }
  return out;
}

}  // namespace

void ToDetail(const Error& error, common::v1::ErrorDetail& detail) {
  detail.Clear();
  detail.set_error(std::string(error.row().name));
  detail.set_message(Clean(error.message, kMaxMessage));
  detail.set_param(Clean(error.param, kMaxParam));
  detail.set_retry_after_ms(error.retry_after_ms);
  detail.set_internal(Clean(error.internal, kMaxInternal));
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
  return error;
}

}  // namespace tollgate::rpc
