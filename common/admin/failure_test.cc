#include "common/admin/failure.h"

#include <google/rpc/error_details.pb.h>
#include <google/rpc/status.pb.h>
#include <gtest/gtest.h>

namespace tollgate::admin {
namespace {

TEST(AdminFailureTest, DetailsAreAStatusWithReasonAndField) {
  const grpc::Status sent = ToStatus(InvalidField("payment.amount_usd", "too small").error);
  EXPECT_EQ(sent.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  google::rpc::Status status;
  ASSERT_TRUE(status.ParseFromString(sent.error_details()));
  EXPECT_EQ(status.code(), static_cast<int>(sent.error_code()));
  ASSERT_EQ(status.details_size(), 2);
  google::rpc::ErrorInfo info;
  ASSERT_TRUE(status.details(0).UnpackTo(&info));
  EXPECT_EQ(info.reason(), "INVALID_FIELD");
  EXPECT_EQ(info.domain(), "tollgate");
  google::rpc::BadRequest bad;
  ASSERT_TRUE(status.details(1).UnpackTo(&bad));
  EXPECT_EQ(bad.field_violations(0).field(), "payment.amount_usd");
}

TEST(AdminFailureTest, InternalTextNeverLeavesAndLongTextIsCut) {
  Failure failure = FromError(Unavailable("password is hunter2", 2500).error);
  EXPECT_EQ(ToStatus(failure).error_details().find("hunter2"), std::string::npos);
  google::rpc::Status status;
  ASSERT_TRUE(status.ParseFromString(ToStatus(failure).error_details()));
  google::rpc::RetryInfo retry;
  ASSERT_TRUE(status.details(1).UnpackTo(&retry));
  EXPECT_EQ(retry.retry_delay().seconds(), 2);
  failure = InvalidField(std::string(5000, 'f'), std::string(5000, 'x')).error;
  EXPECT_LT(ToStatus(failure).error_details().size(), 2048u);
}

}  // namespace
}  // namespace tollgate::admin
