// Admin services have their own gRPC address (decision 62): they are not served at the address for
// other processes, nor the other way around.
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <chrono>

#include "tests/support/cluster.h"
#include "tests/support/engine_sim.h"
#include "tollgate/admin/v1/adjustments.grpc.pb.h"
#include "tollgate/admin/v1/alerts.grpc.pb.h"
#include "tollgate/admin/v1/ledger.grpc.pb.h"
#include "tollgate/admin/v1/payments.grpc.pb.h"
#include "tollgate/admin/v1/usage.grpc.pb.h"
#include "tollgate/admin/v1/workspaces.grpc.pb.h"
#include "tollgate/auth/v1/auth.grpc.pb.h"
#include "tollgate/billing/v1/billing.grpc.pb.h"

namespace tollgate::test {
namespace {

// Whether the server at this address knows the method; an empty message is sent.
bool Has(const std::string& address, const std::string& method) {
  const auto channel = grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  context.set_wait_for_ready(true);
  grpc::CompletionQueue queue;
  // A default ByteBuffer would send no message at all.
  const grpc::Slice nothing;
  const auto call = grpc::GenericStub(channel).PrepareUnaryCall(
      &context, "/" + method, grpc::ByteBuffer(&nothing, 1), &queue);
  call->StartCall();
  grpc::ByteBuffer answer;
  grpc::Status status;
  call->Finish(&answer, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  EXPECT_TRUE(queue.Next(&tag, &ok));
  EXPECT_NE(status.error_code(), grpc::StatusCode::UNAVAILABLE) << method;
  return status.error_code() != grpc::StatusCode::UNIMPLEMENTED;
}

TEST(GrpcAddresses, AdminServicesAndInternalOnesAreApart) {
  for (const bool all_in_one : {true, false}) {
    EngineSim engine{EngineSimOptions()};
    std::string failure;
    ASSERT_TRUE(engine.Start(&failure)) << failure;
    ClusterOptions options;
    options.all_in_one = all_in_one;
    options.catalog = DefaultCatalog({engine.base_url()}, "1", "2");
    Cluster cluster(options);
    ASSERT_EQ(cluster.Start(), "");
    struct Row {
      const char* process;
      const char* service;
      const char* method;
      bool admin;
    };
    const Row rows[] = {
        {"billing", admin::v1::LedgerService::service_full_name(), "GetBalance", true},
        {"billing", admin::v1::AdjustmentService::service_full_name(), "GetAdjustment", true},
        {"billing", admin::v1::UsageService::service_full_name(), "GetRequest", true},
        {"billing", admin::v1::PaymentService::service_full_name(), "GetPayment", true},
        {"billing", admin::v1::AlertService::service_full_name(), "GetAlertSettings", true},
        {"billing", billing::v1::BillingService::service_full_name(), "GetUsage", false},
        {"billing", billing::v1::MeteringService::service_full_name(), "Meter", false},
        {"auth", admin::v1::WorkspaceService::service_full_name(), "ListWorkspaces", true},
        {"auth", auth::v1::AuthService::service_full_name(), "VerifyKey", false},
    };
    for (const Row& row : rows) {
      const std::string method = std::string(row.service) + "/" + row.method;
      EXPECT_EQ(Has(cluster.admin_grpc_address(row.process), method), row.admin) << method;
      EXPECT_EQ(Has(cluster.grpc_address(row.process), method), !row.admin) << method;
    }
  }
}

}  // namespace
}  // namespace tollgate::test
