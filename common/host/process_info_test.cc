#include "common/host/process_info.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

namespace tollgate::host {
namespace {

TEST(ProcessInfo, SaysWhatDoesNotServe) {
  std::vector<std::pair<std::string, bool>> parts = {{"auth", true}, {"billing", false}};
  const ProcessStart start("allinone", 17);
  const ManualClock clock(4'000'000);
  ProcessInfoRpc rpc(start, [&] { return parts; }, clock);
  grpc::ServerBuilder builder;
  builder.RegisterService(&rpc);
  const auto server = builder.BuildAndStart();
  const auto stub = common::v1::ProcessInfoService::NewStub(server->InProcessChannel({}));
  const auto ask = [&] {
    grpc::ClientContext context;
    common::v1::GetProcessInfoResponse response;
    EXPECT_TRUE(stub->GetProcessInfo(&context, {}, &response).ok());
    return response;
  };
  EXPECT_EQ(ask().service(), "allinone");
  EXPECT_EQ(ask().start_us(), 17);
  EXPECT_EQ(ask().now_us(), 4'000'000) << "so that others see how far its clock is off";
  EXPECT_EQ(ask().id(), start.id);
  EXPECT_NE(start.id, ProcessStart("allinone", 17).id);
  EXPECT_FALSE(ask().version().empty());
  EXPECT_FALSE(ask().ready());
  ASSERT_EQ(ask().not_ready_size(), 1);
  EXPECT_EQ(ask().not_ready(0), "billing");
  parts[1].second = true;
  EXPECT_TRUE(ask().ready());
}

}  // namespace
}  // namespace tollgate::host
