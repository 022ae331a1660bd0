#include "common/error/error.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace tollgate {
namespace {

// The table of docs/contract.md "Catalog": status, code, OpenAI type, retryable.
TEST(ErrorCatalogTest, MatchesTheTableOfTheContract) {
  struct Line {
    ErrorId id;
    int status;
    std::string_view code, openai, messages;
    bool retryable;
  };
  const Line lines[] = {
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
  ASSERT_EQ(std::size(lines), static_cast<size_t>(kErrorIdCount));
  for (const Line& line : lines) {
    const ErrorRow& row = RowOf(line.id);
    EXPECT_EQ(row.http_status, line.status) << row.name;
    EXPECT_EQ(row.code, line.code) << row.name;
    EXPECT_EQ(row.openai_type, line.openai) << row.name;
    EXPECT_EQ(row.messages_type, line.messages) << row.name;
    EXPECT_EQ(row.retryable, line.retryable) << row.name;
  }
}

TEST(ErrorCatalogTest, NamesAreUniqueAndSelectTheirRow) {
  std::set<std::string_view> names;
  for (int i = 0; i < kErrorIdCount; ++i) {
    const ErrorRow& row = RowOf(static_cast<ErrorId>(i));
    EXPECT_TRUE(names.insert(row.name).second);
    EXPECT_EQ(ErrorIdByName(row.name), row.id);
    EXPECT_FALSE(row.default_message.empty());
  }
  EXPECT_FALSE(ErrorIdByName("no_such_error").has_value());
}

TEST(ErrorTest, TheInternalTextIsOnlyInTheLogForm) {
  Result<int> result = FailWith(ErrorId::kServerError, "", "disk is on fire");
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().public_message(), "An unexpected error occurred.");
  EXPECT_NE(result.error().ToString().find("disk is on fire"), std::string::npos);
}

}  // namespace
}  // namespace tollgate
