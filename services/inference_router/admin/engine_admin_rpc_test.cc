#include "services/inference_router/admin/engine_admin_rpc.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "services/inference_router/balancer/testing/two_engines.h"

namespace tollgate::inference_router {
namespace {

namespace pb = inference::v1;

class EngineAdminRpcTest : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = (std::filesystem::temp_directory_path() /
             ("tollgate-engine-admin-" + std::to_string(getpid())))
                .string();
    std::filesystem::remove(path_);
    ASSERT_TRUE(drained_.Open(path_).ok());
    grpc::ServerBuilder builder;
    builder.RegisterService(&rpc_);
    server_ = builder.BuildAndStart();
    stub_ = pb::EngineAdminService::NewStub(server_->InProcessChannel({}));
  }
  void TearDown() override {
    server_->Shutdown();
    rpc_.Stop();
    std::filesystem::remove(path_);
  }
  pb::ReadEnginesResponse Read() {
    grpc::ClientContext context;
    pb::ReadEnginesResponse response;
    EXPECT_TRUE(stub_->ReadEngines(&context, {}, &response).ok());
    return response;
  }
  bool SetDrain(const std::string& engine, bool drained) {
    grpc::ClientContext context;
    pb::SetDrainRequest request;
    request.set_engine_id(engine);
    request.set_drained(drained);
    pb::SetDrainResponse response;
    EXPECT_TRUE(stub_->SetDrain(&context, request, &response).ok());
    return response.known();
  }

  std::string path_;
  std::shared_ptr<const RoutingTable> table_ =
      std::make_shared<const RoutingTable>(TwoEngines(3), nullptr);
  DrainedEngines drained_;
  EngineAdminRpc rpc_{[this] { return table_; }, drained_, SystemClock::Get()};
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<pb::EngineAdminService::Stub> stub_;
};

TEST_F(EngineAdminRpcTest, TheReportIsWhatTheEngineStateHas) {
  EngineState& engine = *table_->engines()[1];
  ASSERT_TRUE(engine.TryEnter());
  engine.NoteHealthCheck(1500);
  engine.NoteFirstOutput(8000);
  engine.NoteFirstOutput(16000);
  engine.NoteFailure("health check: refused", 1'700'000'000'000'000);
  engine.OnHealthFailure(true, SystemClock::Get().MonotonicUs());
  const auto response = Read();
  ASSERT_EQ(response.engines_size(), 2);
  EXPECT_TRUE(response.engines(0).healthy());
  EXPECT_EQ(response.engines(0).last_failure_us(), 0);
  const auto& report = response.engines(1);
  EXPECT_EQ(report.id(), "b");
  EXPECT_EQ(report.pool(), "p");
  ASSERT_EQ(report.models_size(), 1);
  EXPECT_EQ(report.models(0), "ns/m");
  EXPECT_FALSE(report.healthy());
  EXPECT_FALSE(report.drained());
  EXPECT_EQ(report.running(), 1);
  EXPECT_EQ(report.max_concurrency(), 3);
  EXPECT_EQ(report.health_check_us(), 1500);
  EXPECT_EQ(report.first_output_us(), 9000) << "the second one counts for an eighth";
  EXPECT_EQ(report.last_failure_us(), 1'700'000'000'000'000);
  EXPECT_EQ(report.last_failure(), "health check: refused");
}

TEST_F(EngineAdminRpcTest, DrainsKnownEnginesOnly) {
  EXPECT_TRUE(SetDrain("a", true));
  EXPECT_TRUE(SetDrain("a", true));
  EXPECT_FALSE(SetDrain("c", true));
  EXPECT_TRUE(Read().engines(0).drained());
  EXPECT_FALSE(Read().engines(1).drained());
  EXPECT_EQ(drained_.ids(), std::set<std::string>{"a"});
  EXPECT_TRUE(SetDrain("a", false));
  EXPECT_FALSE(Read().engines(0).drained());
}

TEST_F(EngineAdminRpcTest, WithoutACatalogItIsUnavailable) {
  table_ = nullptr;
  grpc::ClientContext context;
  pb::ReadEnginesResponse response;
  EXPECT_EQ(stub_->ReadEngines(&context, {}, &response).error_code(),
            grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace tollgate::inference_router
