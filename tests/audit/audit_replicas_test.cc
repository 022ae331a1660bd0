// Two replicas of auth and of billing, each pair on one PostgreSQL database. While credit is given,
// one of the four is killed (SIGKILL) again and again. Every acknowledged change is in auth's log
// exactly once, and verify-audit finds sources, copy and completeness in order.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <random>
#include <set>

#include "tests/support/cluster.h"
#include "tests/support/postgres.h"
#include "tollgate/admin/v1/audit.grpc.pb.h"

namespace tollgate::test {
namespace {

namespace pb = tollgate::admin::v1;
using ::tollgate::testing::TestPostgres;

class AuditReplicasTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto* server = TestPostgres::Shared();
    if (!server && TestPostgres::Required()) FAIL() << "PostgreSQL is not installed";
    if (!server) GTEST_SKIP() << "PostgreSQL is not installed";
    ClusterOptions options;
    options.all_in_one = false;
    options.catalog = DefaultCatalog({"http://127.0.0.1:1"});  // no engine is asked
    options.auths = 2;
    options.billings = 2;
    options.auth_sql = server->MakeDatabase("audit_auth");
    options.billing_sql = server->MakeDatabase("audit_billing");
    auth_url_ = options.auth_sql;
    billing_url_ = options.billing_sql;
    cluster_.emplace(options);
    ASSERT_EQ(cluster_->Start(), "");
  }
  void TearDown() override {
    if (cluster_) EXPECT_EQ(cluster_->StopOrderly(), "");
  }

  std::unique_ptr<pb::AuditService::Stub> Audit() {
    return pb::AuditService::NewStub(grpc::CreateChannel(cluster_->admin_grpc_address("auth"),
                                                         grpc::InsecureChannelCredentials()));
  }
  // Number of log entries from billing, by request id.
  std::map<std::string, int> Copied() {
    std::map<std::string, int> counts;
    pb::ListAuditEntriesRequest request;
    request.set_page_size(200);
    const auto audit = Audit();
    do {
      grpc::ClientContext context;
      context.AddMetadata("tollgate-operator", "tester");
      pb::ListAuditEntriesResponse response;
      const grpc::Status status = audit->ListAuditEntries(&context, request, &response);
      if (!status.ok()) return {};
      for (const auto& entry : response.audit_entries()) {
        if (entry.source() == "billing") ++counts[entry.request_id()];
      }
      request.set_page_token(response.next_page_token());
    } while (!request.page_token().empty());
    return counts;
  }
  pb::VerifyAuditEntriesResponse Verify() {
    grpc::ClientContext context;
    context.AddMetadata("tollgate-operator", "tester");
    pb::VerifyAuditEntriesResponse response;
    const grpc::Status status = Audit()->VerifyAuditEntries(&context, {}, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  std::string auth_url_, billing_url_;
  std::optional<Cluster> cluster_;
};

TEST_F(AuditReplicasTest, EachChangeIsCopiedOnceWhoeverIsKilled) {
  const std::string workspace = cluster_->NewWorkspace("acme");
  ASSERT_EQ(workspace, "acme");
  constexpr int kChanges = 60;
  std::mt19937 random(1);
  std::set<std::string> acknowledged;
  int kills = 0;
  for (int i = 0; i < kChanges; ++i) {
    std::string victim;
    if (i % 6 == 3) {
      const char* const names[] = {"auth", "auth-2", "billing", "billing-2"};
      victim = names[random() % 4];
      cluster_->process(victim).Kill();
      ++kills;
    }
    const std::string id = "credit-" + std::to_string(i);
    // A change is made once per id, however often it is requested.
    ASSERT_TRUE(
        WaitUntil([&] { return cluster_->TryAddCredit(workspace, 1'000'000'000, id); }, 20'000, 50))
        << id;
    acknowledged.insert(id);
    if (!victim.empty()) ASSERT_EQ(cluster_->Restart(victim), "");
  }
  std::map<std::string, int> copied;
  EXPECT_TRUE(WaitUntil(
      [&] {
        copied = Copied();
        for (const std::string& id : acknowledged) {
          if (!copied.contains(id)) return false;
        }
        return true;
      },
      30'000, 200));
  for (const std::string& id : acknowledged) EXPECT_EQ(copied[id], 1) << id;
  const auto found = Verify();
  EXPECT_TRUE(found.ok()) << found.problem();
  ASSERT_EQ(found.sources_size(), 1);
  EXPECT_GE(found.sources(0).sequence(), kChanges);
  EXPECT_EQ(found.sources(0).waiting(), 0);
  EXPECT_GT(kills, 5);
  // The command run next to the servers finds the same.
  const char* bin = std::getenv("TOLLGATE_BIN");
  const std::string command = std::string(bin ? bin : "build/dev/bin") +
                              "/tollgate-auth verify-audit --database '" + auth_url_ +
                              "' --source 'billing=" + billing_url_ + "'";
  EXPECT_EQ(std::system(command.c_str()), 0) << command;  // NOLINT: a command of ours
}

}  // namespace
}  // namespace tollgate::test
