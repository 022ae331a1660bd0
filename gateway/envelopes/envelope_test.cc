#include "gateway/envelopes/envelope.h"

#include <gtest/gtest.h>

#include "common/json/json.h"

namespace tollgate::gateway {
namespace {

Error Make(ErrorId id, std::string message = "", std::string param = "", int64_t retry_ms = 0) {
  return Error{id, std::move(message), std::move(param), retry_ms, "internal secret"};
}

std::string Header(const HttpResponse& response, std::string_view name) {
  for (const auto& [key, value] : response.headers) {
    if (key == name) return value;
  }
  return "";
}

// The table of docs/contract.md, written independently of the catalog.
struct Row {
  ErrorId id;
  int status;
  const char* code;
  const char* openai;
  const char* messages;
  bool retryable;
};
const Row kTable[] = {
    {ErrorId::kBadRequest, 400, "bad_request", "invalid_request_error", "invalid_request_error",
     false},
    {ErrorId::kRequestTooLarge, 400, "bad_request", "invalid_request_error", "request_too_large",
     false},
    {ErrorId::kContextLengthExceeded, 400, "context_length_exceeded", "invalid_request_error",
     "invalid_request_error", false},
    {ErrorId::kInvalidApiKey, 401, "invalid_api_key", "authentication_error",
     "authentication_error", false},
    {ErrorId::kInsufficientCredits, 402, "insufficient_credits", "permission_error",
     "permission_error", false},
    {ErrorId::kVirtualKeyBlocked, 403, "virtual_key_blocked", "permission_error",
     "permission_error", false},
    {ErrorId::kModelBlocked, 403, "model_blocked", "permission_error", "permission_error", false},
    {ErrorId::kModelNotFound, 404, "model_unavailable", "not_found_error", "not_found_error",
     false},
    {ErrorId::kModelNotServing, 503, "model_unavailable", "not_found_error", "not_found_error",
     true},
    {ErrorId::kNotFound, 404, "not_found", "not_found_error", "not_found_error", false},
    {ErrorId::kIdempotencyInProgress, 409, "idempotency_in_progress", "rate_limit_error",
     "rate_limit_error", true},
    {ErrorId::kIdempotencyAnswerGone, 409, "idempotency_answer_gone", "invalid_request_error",
     "invalid_request_error", false},
    {ErrorId::kRateLimited, 429, "rate_limited", "rate_limit_error", "rate_limit_error", true},
    {ErrorId::kTokenLimited, 429, "token_limited", "rate_limit_error", "rate_limit_error", true},
    {ErrorId::kServerError, 500, "server_error", "server_error", "api_error", true},
    {ErrorId::kUpstreamError, 502, "server_error", "server_error", "api_error", true},
    {ErrorId::kUpstreamUnreachable, 502, "service_unavailable", "service_unavailable",
     "overloaded_error", true},
    {ErrorId::kServiceUnavailable, 503, "service_unavailable", "service_unavailable",
     "overloaded_error", true},
};

TEST(Envelope, EveryErrorInBothFamilies) {
  ASSERT_EQ(std::size(kTable), static_cast<size_t>(kErrorIdCount));
  HttpRequest request;
  request.x_request_id = "generated";
  for (const Row& row : kTable) {
    const Error error = Make(row.id, "Text.", "max_tokens", 2500);
    for (const Family family : {Family::kOpenAi, Family::kMessages}) {
      const HttpResponse response = RenderError(family, error, request);
      EXPECT_EQ(response.status, row.status);
      EXPECT_EQ(Header(response, "content-type"), "application/json");
      EXPECT_EQ(Header(response, "retry-after"), row.retryable ? "3" : "") << row.code;
      EXPECT_EQ(Header(response, "x-should-retry"), row.retryable ? "true" : "false") << row.code;
      EXPECT_EQ(response.body.find("secret"), std::string::npos);
      const auto document = json::Document::ParseView(response.body);
      ASSERT_TRUE(document.ok()) << response.body;
      const json::Value inner = document->root().Find("error");
      EXPECT_EQ(inner.Find("code").string(), row.code);
      EXPECT_EQ(inner.Find("type").string(), family == Family::kOpenAi ? row.openai : row.messages);
      EXPECT_NE(inner.Find("message").string().find("Text."), std::string::npos);
      const bool has_param = static_cast<bool>(inner.Find("param"));
      EXPECT_EQ(has_param, family == Family::kOpenAi &&
                               std::string_view(row.openai) == "invalid_request_error");
      EXPECT_FALSE(document->root().Find("request_id"));
    }
  }
}

TEST(Envelope, ExactBytes) {
  HttpRequest request;
  EXPECT_EQ(
      RenderError(Family::kOpenAi, Make(ErrorId::kBadRequest, "No \"model\".", "model"), request)
          .body,
      R"({"error":{"message":"No \"model\".","type":"invalid_request_error","param":"model",)"
      R"("code":"bad_request"}})");
  EXPECT_EQ(RenderError(Family::kOpenAi, Make(ErrorId::kRateLimited), request).body,
            R"({"error":{"message":"Too many requests.","type":"rate_limit_error",)"
            R"("code":"rate_limited"}})");
  request.x_request_id = "abc";
  request.x_request_id_was_sent = true;
  EXPECT_EQ(RenderError(Family::kMessages,
                        Make(ErrorId::kBadRequest, "Must be an integer.", "max_tokens"), request)
                .body,
            R"({"type":"error","error":{"type":"invalid_request_error","code":"bad_request",)"
            R"("message":"max_tokens: Must be an integer."},"request_id":"abc"})");
}

TEST(Envelope, MessagesNamesTheFieldOnce) {
  const std::string body = ErrorBody(
      Family::kMessages, Make(ErrorId::kBadRequest, "'max_tokens' is bad.", "max_tokens"));
  EXPECT_NE(body.find("\"'max_tokens' is bad.\""), std::string::npos);
}

TEST(Envelope, MessagesThreadErrorHasDetails) {
  const Error error = BadRequest("'thread' is not supported.", "thread").error;
  EXPECT_EQ(ErrorBody(Family::kMessages, error),
            R"({"type":"error","error":{"type":"invalid_request_error","code":"bad_request",)"
            R"("message":"'thread' is not supported.","details":)"
            R"({"error_code":"thread_unsupported_request","unsupported":["thread"]}}})");
  EXPECT_EQ(ErrorBody(Family::kOpenAi, error).find("details"), std::string::npos);
}

TEST(Envelope, RetryAfterIsWholeSecondsRoundedUp) {
  HttpRequest request;
  const auto seconds = [&](int64_t ms) {
    return Header(RenderError(Family::kOpenAi, Make(ErrorId::kRateLimited, "", "", ms), request),
                  "retry-after");
  };
  EXPECT_EQ(seconds(0), "");  // unknown
  EXPECT_EQ(seconds(1), "1");
  EXPECT_EQ(seconds(1000), "1");
  EXPECT_EQ(seconds(1001), "2");
  EXPECT_EQ(seconds(3'600'000), "60");
}

TEST(Envelope, InvalidUtf8IsReplaced) {
  const std::string body = ErrorBody(Family::kOpenAi, Make(ErrorId::kBadRequest, "\xFF", "\x80"));
  EXPECT_TRUE(json::Document::ParseView(body).ok()) << body;
}

// Decision 32. The second message is the public service's own for a max_tokens that is too large.
TEST(Envelope, WhatAnErrorQuotesIsCutBetweenCharacters) {
  std::string text = "a";
  for (int i = 0; i < 1'000'000; ++i) text += "\xc3\xa9";
  for (const Family family : {Family::kOpenAi, Family::kMessages}) {
    const std::string body = ErrorBody(family, Make(ErrorId::kBadRequest, text, text), "req");
    const auto document = json::Document::ParseView(body);
    ASSERT_TRUE(document) << body.substr(0, 2000);
    const json::Value error = document->root().Find("error");
    EXPECT_EQ(error.Find("message").string(), text.substr(0, 1023));
    if (family == Family::kOpenAi) EXPECT_EQ(error.Find("param").string(), text.substr(0, 127));
  }
}

TEST(Envelope, MessagesOverflowsStateTheNumbers) {
  struct Case {
    TokenAccounting tokens;
    const char* text;
  };
  const Case cases[] = {
      {{.limit = 4096, .prompt = 5000}, "prompt is too long: 5000 tokens > 4096 maximum"},
      {{.limit = 4096, .prompt = 5000, .output = 100},
       "prompt is too long: 5000 tokens > 4096 maximum"},
      {{.limit = 4096, .prompt = 4097, .prompt_is_lower_bound = true},
       "prompt is too long: 4097 tokens > 4096 maximum"},
      {{.limit = 4096, .prompt = 4000, .output = 100},
       "input length and `max_tokens` exceed context limit: 4000 + 100 > 4096"},
      // Numbers that are unknown or not exact are not stated.
      {{.limit = 4096, .prompt = 4000, .output = 100, .prompt_is_lower_bound = true}, "Plain."},
      {{.limit = 4096, .prompt = 4000, .output = 96}, "Plain."},
      {{.limit = 4096, .prompt = 4096}, "Plain."},
      {{.limit = 4096, .output = 5000}, "Plain."},
      {{.limit = 4096}, "Plain."},
      {{.prompt = 5000}, "Plain."},
      {{}, "Plain."},
  };
  for (const Case& one : cases) {
    Error error = Make(ErrorId::kContextLengthExceeded, "Plain.");
    error.tokens = one.tokens;
    EXPECT_EQ(PublicMessage(Family::kMessages, error), one.text);
    EXPECT_EQ(PublicMessage(Family::kOpenAi, error), "Plain.");
    const std::string body = ErrorBody(Family::kMessages, error);
    EXPECT_NE(body.find("\"" + std::string(one.text) + "\""), std::string::npos) << body;
  }
  Error other = Make(ErrorId::kBadRequest, "Plain.");
  other.tokens = {.limit = 1, .prompt = 2};
  EXPECT_EQ(PublicMessage(Family::kMessages, other), "Plain.");
}

}  // namespace
}  // namespace tollgate::gateway
