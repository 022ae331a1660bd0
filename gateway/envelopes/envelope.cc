#include "gateway/envelopes/envelope.h"

#include <algorithm>

#include "common/json/json.h"
#include "gateway/envelopes/stream_error.h"

namespace tollgate::gateway {

namespace {

// Clients give up on longer waits, or sleep through them (wire.md 1.4).
constexpr int64_t kMaxRetryAfterS = 60;

void AppendMember(std::string& out, std::string_view name, std::string_view text) {
  if (out.back() != '{') out.push_back(',');
  json::AppendQuoted(out, name);
  out.push_back(':');
  // Messages may quote what a caller sent; whatever it was, the body stays valid.
  json::AppendQuoted(out, json::IsValidUtf8(text) ? text : std::string_view("invalid text"));
}

// What agents of the Messages family look for (decisions.md 32): the two forms of the public
// service, each only when its numbers are known and true. Empty: neither.
std::string MessagesOverflow(const TokenAccounting& tokens) {
  const auto [limit, prompt, output, at_least] = tokens;
  if (limit <= 0 || prompt <= 0) return "";
  if (prompt > limit) {
    return "prompt is too long: " + std::to_string(prompt) + " tokens > " + std::to_string(limit) +
           " maximum";
  }
  // Who reads this form computes the max_tokens that would fit: a lower bound would mislead.
  if (at_least || output <= limit - prompt) return "";
  return "input length and `max_tokens` exceed context limit: " + std::to_string(prompt) + " + " +
         std::to_string(output) + " > " + std::to_string(limit);
}

// The object that stands under "error" in the OpenAI family.
std::string OpenAiError(const Error& error) {
  const ErrorRow& row = error.row();
  std::string out = "{";
  AppendMember(out, "message", PublicMessage(Family::kOpenAi, error));
  AppendMember(out, "type", row.openai_type);
  if (!error.param.empty() && row.openai_type == "invalid_request_error") {
    AppendMember(out, "param", error.param);
  }
  AppendMember(out, "code", row.code);
  return out + "}";
}

// What the official clients of the Messages family act upon by themselves (wire.md section 9): told
// that no threads are kept here, they send the whole conversation instead. Empty: nothing.
std::string_view MessagesDetails(const Error& error) {
  if (error.id != ErrorId::kBadRequest || error.param != "thread") return "";
  return R"({"error_code":"thread_unsupported_request","unsupported":["thread"]})";
}

std::string MessagesBody(const Error& error, std::string_view request_id) {
  const ErrorRow& row = error.row();
  std::string message = PublicMessage(Family::kMessages, error);
  // This family has no param: the message names the field. What does not fit says so in words that
  // agents know, and those it keeps.
  if (!error.param.empty() && row.messages_type == "invalid_request_error" &&
      error.id != ErrorId::kContextLengthExceeded &&
      message.find(error.param) == std::string::npos) {
    message = error.param + ": " + message;
  }
  std::string inner = "{";
  AppendMember(inner, "type", row.messages_type);
  AppendMember(inner, "code", row.code);
  AppendMember(inner, "message", message);
  if (const std::string_view details = MessagesDetails(error); !details.empty()) {
    inner.append(",\"details\":").append(details);
  }
  std::string out = "{\"type\":\"error\",\"error\":" + inner + "}";
  if (!request_id.empty()) AppendMember(out, "request_id", request_id);
  return out + "}";
}

}  // namespace

std::string PublicMessage(Family family, const Error& error) {
  if (family == Family::kMessages && error.id == ErrorId::kContextLengthExceeded) {
    if (std::string text = MessagesOverflow(error.tokens); !text.empty()) return text;
  }
  return std::string(error.public_message());
}

std::string ErrorBody(Family family, const Error& error, std::string_view request_id) {
  return family == Family::kMessages ? MessagesBody(error, request_id)
                                     : "{\"error\":" + OpenAiError(error) + "}";
}

HttpResponse RenderError(Family family, const Error& error, const HttpRequest& request) {
  HttpResponse response;
  response.status = error.row().http_status;
  response.headers.emplace_back("content-type", "application/json");
  if (error.row().retryable && error.retry_after_ms > 0) {
    const int64_t seconds =
        std::clamp<int64_t>((error.retry_after_ms + 999) / 1000, 1, kMaxRetryAfterS);
    response.headers.emplace_back("retry-after", std::to_string(seconds));
  }
  const std::string_view request_id =
      request.x_request_id_was_sent ? std::string_view(request.x_request_id) : std::string_view();
  response.body = ErrorBody(family, error, request_id);
  return response;
}

std::string OpenAiStreamError(const Error& error) {
  return "data: {\"error\":" + OpenAiError(error) + "}\n\n";
}

std::string MessagesStreamError(const Error& error) {
  return "event: error\ndata: " + MessagesBody(error, {}) + "\n\n";
}

}  // namespace tollgate::gateway
