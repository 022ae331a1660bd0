#include "common/rpc/error_status.h"

#include <gtest/gtest.h>

namespace tollgate::rpc {
namespace {

TEST(ErrorStatus, EveryRowRoundTrips) {
  for (int i = 0; i < kErrorIdCount; ++i) {
    Error error{.id = static_cast<ErrorId>(i), .message = "m", .retry_after_ms = i};
    grpc::Status status = ToStatus(error);
    EXPECT_FALSE(status.ok());
    Error back = FromStatus(status);
    EXPECT_EQ(back.id, error.id);
    EXPECT_EQ(back.message, "m");
    EXPECT_EQ(back.retry_after_ms, i);
  }
}

TEST(ErrorStatus, EveryReasonRoundTrips) {
  for (int i = 0; i < kReasonCount; ++i) {
    const Error error{.id = ErrorId::kRateLimited, .reason = static_cast<Reason>(i)};
    EXPECT_EQ(FromStatus(ToStatus(error)).reason, error.reason);
  }
}

// Processes of two versions run together during an upgrade.
TEST(ErrorStatus, AnUnknownOrMissingReasonIsNone) {
  common::v1::ErrorDetail detail;
  ToDetail({.id = ErrorId::kRateLimited}, detail);
  EXPECT_EQ(detail.reason(), "");
  detail.set_reason("a_reason_of_the_future");
  const Error error = FromDetail(detail);
  EXPECT_EQ(error.id, ErrorId::kRateLimited);
  EXPECT_EQ(error.reason, Reason::kNone);
}

TEST(ErrorStatus, TokenAccountingRoundTrips) {
  Error error{.id = ErrorId::kContextLengthExceeded};
  error.tokens = {.limit = INT64_MAX, .prompt = 4097, .output = 12, .prompt_is_lower_bound = true};
  const TokenAccounting back = FromStatus(ToStatus(error)).tokens;
  EXPECT_EQ(back.limit, INT64_MAX);
  EXPECT_EQ(back.prompt, 4097);
  EXPECT_EQ(back.output, 12);
  EXPECT_TRUE(back.prompt_is_lower_bound);
  common::v1::ErrorDetail detail;
  ToDetail({.id = ErrorId::kContextLengthExceeded}, detail);
  EXPECT_FALSE(detail.has_tokens()) << "all counts are unknown";
}

TEST(ErrorStatus, WithoutDetailTheStatusCodeSelectsAnInternalError) {
  using enum grpc::StatusCode;
  for (auto code : {UNAVAILABLE, DEADLINE_EXCEEDED, CANCELLED, RESOURCE_EXHAUSTED}) {
    EXPECT_EQ(FromStatus({code, "x"}).id, ErrorId::kServiceUnavailable) << code;
  }
  for (auto code : {INVALID_ARGUMENT, UNAUTHENTICATED, PERMISSION_DENIED, NOT_FOUND, INTERNAL,
                    UNKNOWN, UNIMPLEMENTED, FAILED_PRECONDITION}) {
    EXPECT_EQ(FromStatus({code, "x"}).id, ErrorId::kServerError) << code;
  }
}

TEST(ErrorStatus, MalformedOrUnknownDetailsAreIgnored) {
  EXPECT_EQ(FromStatus({grpc::StatusCode::UNAVAILABLE, "x", "\xff\xff garbage"}).id,
            ErrorId::kServiceUnavailable);
  common::v1::ErrorDetail detail;
  detail.set_error("a_row_of_the_future");
  EXPECT_EQ(FromStatus({grpc::StatusCode::RESOURCE_EXHAUSTED, "x", detail.SerializeAsString()}).id,
            ErrorId::kServiceUnavailable);
}

TEST(ErrorStatus, DetailsStayBelowTwoKibibytesAndAreValidUtf8) {
  std::string euro;
  for (int i = 0; i < 5'000; ++i) euro += "€";
  Error error{.id = ErrorId::kBadRequest,
              .message = euro,
              .param = euro,
              .internal = "\xff\xc0\xaf ok \xed\xa0\x80 " + euro,
              .tokens = {INT64_MAX, INT64_MAX, INT64_MAX, true},
              .reason = Reason::kIdempotencyRunning};
  grpc::Status status = ToStatus(error);
  EXPECT_LE(status.error_details().size(), 2'048u);
  Error back = FromStatus(status);
  EXPECT_EQ(back.id, ErrorId::kBadRequest);
  EXPECT_EQ(back.tokens.prompt, INT64_MAX);
  EXPECT_EQ(back.message, euro.substr(0, back.message.size()));
  EXPECT_EQ(back.message.size() % 3, 0u);
  EXPECT_EQ(back.internal.substr(0, 11), "??? ok ??? ");
}

}  // namespace
}  // namespace tollgate::rpc
