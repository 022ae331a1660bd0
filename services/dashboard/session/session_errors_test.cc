#include "services/dashboard/session/session_errors.h"

#include <gtest/gtest.h>

#include "common/admin/failure.h"

namespace tollgate::dashboard {
namespace {

TEST(SessionErrorsTest, AFailureLooksLikeOneOfTheAdminApi) {
  const RenderedStatus throttled =
      Render(admin::ToStatus(admin::Failure{.code = grpc::StatusCode::RESOURCE_EXHAUSTED,
                                            .reason = "THROTTLED",
                                            .message = "wait",
                                            .retry_after_ms = 1500}));
  EXPECT_EQ(throttled.http_status, 429);
  EXPECT_EQ(throttled.retry_after_seconds, 2) << "never too early";
  EXPECT_EQ(
      throttled.body,
      R"({"code":8,"message":"wait","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo",)"
      R"("reason":"THROTTLED","domain":"tollgate","metadata":{}}]})");
  const RenderedStatus invalid =
      Render(admin::ToStatus(admin::InvalidField("email", "required").error));
  EXPECT_EQ(invalid.http_status, 400);
  EXPECT_NE(invalid.body.find(R"("fieldViolations":[{"field":"email","description":"required"}])"),
            std::string::npos);
}

// Error texts of gRPC itself contain addresses and file names.
TEST(SessionErrorsTest, TextsOfGrpcAreNotShown) {
  const grpc::Status lost(grpc::StatusCode::UNAVAILABLE, "connect to 10.0.0.1:9000 failed");
  EXPECT_EQ(Render(lost).http_status, 503);
  EXPECT_EQ(Render(lost).body.find("10.0.0.1"), std::string::npos);
  EXPECT_EQ(ReasonOf(lost), "UNAVAILABLE");
  EXPECT_EQ(ReasonOf(MakeStatus(grpc::StatusCode::UNAUTHENTICATED, "X", "y")), "X");
}

}  // namespace
}  // namespace tollgate::dashboard
