#include "gateway/envelopes/envelope.h"

#include <algorithm>

#include "common/base/text.h"
#include "common/json/writer.h"
#include "gateway/envelopes/stream_error.h"

namespace tollgate::gateway {

namespace {

// Clients give up on longer waits or block for their full length (docs/design/wire.md 1.4).
constexpr int64_t kMaxRetryAfterS = 60;

// Bounds the size of an answer to bad input, no matter what the error quotes.
constexpr size_t kMaxMessage = 1024;
constexpr size_t kMaxParam = 128;

// Messages may quote bytes that the client sent; the body must stay valid JSON.
std::string_view ValidUtf8(std::string_view text, size_t max_bytes) {
  if (!IsValidUtf8(text)) return "invalid text";
  if (text.size() <= max_bytes) return text;
  size_t end = max_bytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

// The two overflow messages of the public Messages service, which agents match (decision 32). Each
// is used only when its numbers are known and exact. Empty when neither applies.
std::string MessagesOverflow(const TokenAccounting& tokens) {
  const auto [limit, prompt, output, prompt_is_lower_bound] = tokens;
  if (limit <= 0 || prompt <= 0) return "";
  if (prompt > limit) {
    return "prompt is too long: " + std::to_string(prompt) + " tokens > " + std::to_string(limit) +
           " maximum";
  }
  // Clients compute the largest max_tokens that fits from this message, so a lower bound would
  // mislead them.
  if (prompt_is_lower_bound || output <= limit - prompt) return "";
  return "input length and `max_tokens` exceed context limit: " + std::to_string(prompt) + " + " +
         std::to_string(output) + " > " + std::to_string(limit);
}

// The value of "error" in the OpenAI envelope.
std::string OpenAiError(const Error& error) {
  const ErrorRow& row = error.row();
  json::Writer out;
  out.Text("message", ValidUtf8(PublicMessage(Family::kOpenAi, error), kMaxMessage));
  out.Text("type", row.openai_type);
  if (!error.param.empty() && row.openai_type == "invalid_request_error") {
    out.Text("param", ValidUtf8(error.param, kMaxParam));
  }
  return out.Text("code", row.code).Done();
}

// The `details` that the official Messages client acts on (docs/design/wire.md 9): after this error
// it sends the whole conversation instead of a thread. Empty for other errors.
std::string_view MessagesDetails(const Error& error) {
  if (error.id != ErrorId::kBadRequest || error.param != "thread") return "";
  return R"({"error_code":"thread_unsupported_request","unsupported":["thread"]})";
}

std::string MessagesBody(const Error& error, std::string_view request_id) {
  const ErrorRow& row = error.row();
  std::string message = PublicMessage(Family::kMessages, error);
  // This envelope has no param, so the message names the field. Overflow messages stay unchanged:
  // agents match them.
  if (!error.param.empty() && row.messages_type == "invalid_request_error" &&
      error.id != ErrorId::kContextLengthExceeded &&
      message.find(error.param) == std::string::npos) {
    message = error.param + ": " + message;
  }
  json::Writer inner;
  inner.Text("type", row.messages_type);
  inner.Text("code", row.code);
  inner.Text("message", ValidUtf8(message, kMaxMessage));
  if (const std::string_view details = MessagesDetails(error); !details.empty()) {
    inner.Raw("details", details);
  }
  json::Writer out;
  out.Text("type", "error").Raw("error", inner.Done());
  if (!request_id.empty()) out.Text("request_id", ValidUtf8(request_id, kMaxParam));
  return out.Done();
}

}  // namespace

std::string PublicMessage(Family family, const Error& error) {
  if (family == Family::kMessages && error.id == ErrorId::kContextLengthExceeded) {
    if (std::string text = MessagesOverflow(error.tokens); !text.empty()) return text;
  }
  return std::string(error.public_message());
}

int64_t RetryAfterSeconds(int64_t wait_ms) {
  return wait_ms >= kMaxRetryAfterS * 1000 ? kMaxRetryAfterS
                                           : std::max<int64_t>((wait_ms + 999) / 1000, 1);
}

std::string ErrorBody(Family family, const Error& error, std::string_view request_id) {
  return family == Family::kMessages ? MessagesBody(error, request_id)
                                     : json::Writer().Raw("error", OpenAiError(error)).Done();
}

HttpResponse RenderError(Family family, const Error& error, const HttpRequest& request) {
  HttpResponse response;
  response.status = error.row().http_status;
  response.headers.emplace_back("content-type", "application/json");
  if (error.row().retryable && error.retry_after_ms > 0) {
    response.headers.emplace_back("retry-after",
                                  std::to_string(RetryAfterSeconds(error.retry_after_ms)));
  }
  // Official clients obey this header before they look at the status (decision 40).
  response.headers.emplace_back("x-should-retry", error.row().retryable ? "true" : "false");
  const std::string_view request_id =
      request.x_request_id_was_sent ? std::string_view(request.x_request_id) : std::string_view();
  response.body = ErrorBody(family, error, request_id);
  return response;
}

std::string OpenAiStreamError(const Error& error) {
  return "data: " + ErrorBody(Family::kOpenAi, error) + "\n\n";
}

std::string MessagesStreamError(const Error& error) {
  return "event: error\ndata: " + MessagesBody(error, {}) + "\n\n";
}

}  // namespace tollgate::gateway
