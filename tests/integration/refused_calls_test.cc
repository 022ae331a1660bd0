// H78: an admin call that is refused for missing rights is recorded in the audit log, over HTTP and
// over gRPC, at every service. A flood of calls makes few entries.
#include <map>

#include "tests/integration/people_world.h"
#include "tollgate/admin/v1/adjustments.grpc.pb.h"
#include "tollgate/admin/v1/audit.grpc.pb.h"
#include "tollgate/admin/v1/keys.grpc.pb.h"
#include "tollgate/admin/v1/ledger.grpc.pb.h"

namespace tollgate::test {
namespace {

class RefusedCallsTest : public PeopleWorld {
 protected:
  void SetUp() override {
    PeopleWorld::SetUp();
    if (!channel_) return;
    audit_ = pb::AuditService::NewStub(channel_);
    keys_ = pb::KeyService::NewStub(channel_);
    const auto billing = grpc::CreateChannel(cluster_->admin_grpc_address("billing"),
                                             grpc::InsecureChannelCredentials());
    ledger_ = pb::LedgerService::NewStub(billing);
    adjustments_ = pb::AdjustmentService::NewStub(billing);
  }

  std::vector<pb::AuditEntry> Refusals(const std::string& parent = "") {
    pb::ListAuditEntriesRequest request;
    request.set_parent(parent);
    request.set_filter("action = \"call.refuse\"");
    request.set_page_size(200);
    std::vector<pb::AuditEntry> entries;
    do {
      pb::ListAuditEntriesResponse page;
      EXPECT_EQ(As(Operator(), *audit_, &pb::AuditService::Stub::ListAuditEntries, request, page),
                "");
      entries.insert(entries.end(), page.audit_entries().begin(), page.audit_entries().end());
      request.set_page_token(page.next_page_token());
    } while (!request.page_token().empty());
    return entries;
  }
  // The newest entry of a refused call of this actor to this method.
  std::optional<pb::AuditEntry> Find(const std::string& actor, const std::string& method,
                                     const std::string& parent = "") {
    for (const pb::AuditEntry& entry : Refusals(parent)) {
      if (entry.actor() == actor && entry.subject() == "tollgate.admin.v1." + method) return entry;
    }
    return std::nullopt;
  }
  std::optional<pb::AuditEntry> WaitFor(const std::string& actor, const std::string& method,
                                        const std::string& parent = "") {
    std::optional<pb::AuditEntry> entry;
    WaitUntil([&] { return (entry = Find(actor, method, parent)).has_value(); }, 20'000, 100);
    return entry;
  }

  std::unique_ptr<pb::AuditService::Stub> audit_;
  std::unique_ptr<pb::KeyService::Stub> keys_;
  std::unique_ptr<pb::LedgerService::Stub> ledger_;
  std::unique_ptr<pb::AdjustmentService::Stub> adjustments_;
};
INSTANTIATE_TEST_SUITE_P(Databases, RefusedCallsTest, ::testing::Values("sqlite", "postgres"),
                         [](const auto& info) { return info.param; });

TEST_P(RefusedCallsTest, OverGrpcWhatTheRoleTheStepUpOrTheScopeForbids) {
  pb::CreateKeyRequest create;
  create.set_parent("workspaces/acme");
  pb::CreateKeyResponse created;
  Identity viewer = Person(Role::ROLE_VIEWER, "vera");
  viewer.set_address("192.0.2.9");
  EXPECT_EQ(As(viewer, *keys_, &pb::KeyService::Stub::CreateKey, create, created),
            "PERMISSION_DENIED");
  pb::FreezeWorkspaceRequest freeze;
  freeze.set_name("workspaces/acme");
  freeze.set_reason("abuse");
  freeze.set_request_id("f1");
  pb::Balance balance;
  Identity stale = Operator();
  stale.set_signed_in_us(1);
  EXPECT_EQ(As(stale, *ledger_, &pb::LedgerService::Stub::FreezeWorkspace, freeze, balance),
            "STEP_UP_REQUIRED");
  // The handler refuses it for its amount.
  pb::CreateAdjustmentRequest credit;
  credit.set_parent("workspaces/acme");
  credit.set_request_id("g1");
  credit.mutable_adjustment()->set_kind(pb::ADJUSTMENT_KIND_CREDIT);
  credit.mutable_adjustment()->set_amount_usd("1000000");
  credit.mutable_adjustment()->set_reason("a");
  pb::Adjustment credited;
  EXPECT_EQ(
      As(stale, *adjustments_, &pb::AdjustmentService::Stub::CreateAdjustment, credit, credited),
      "STEP_UP_REQUIRED");
  // The handler refuses it for the role that it grants.
  pb::CreateInvitationRequest invite;
  invite.set_parent("workspaces/acme");
  invite.set_request_id("i1");
  invite.mutable_invitation()->set_email("eve@example.com");
  invite.mutable_invitation()->set_role("admin");
  pb::CreateInvitationResponse invited;
  EXPECT_EQ(As(Person(Role::ROLE_ADMIN, "adam"), *invitations_,
               &pb::InvitationService::Stub::CreateInvitation, invite, invited),
            "PERMISSION_DENIED");

  const auto role = WaitFor("user:vera", "KeyService/CreateKey", "workspaces/acme");
  ASSERT_TRUE(role) << "in the workspace's log";
  EXPECT_EQ(role->address(), "192.0.2.9");
  EXPECT_EQ(role->detail().substr(0, 18), "PERMISSION_DENIED:");
  const auto step_up = WaitFor("user:operator", "LedgerService/FreezeWorkspace");
  ASSERT_TRUE(step_up);
  EXPECT_EQ(step_up->detail().substr(0, 17), "STEP_UP_REQUIRED:");
  EXPECT_TRUE(WaitFor("user:operator", "AdjustmentService/CreateAdjustment"));
  EXPECT_TRUE(WaitFor("user:adam", "InvitationService/CreateInvitation"));
}

TEST_P(RefusedCallsTest, WhoIsNoMemberWritesNothingIntoAWorkspacesLog) {
  pb::CreateKeyRequest create;
  create.set_parent("workspaces/acme");
  pb::CreateKeyResponse created;
  EXPECT_EQ(As(Person(Role::ROLE_UNSPECIFIED, "eve"), *keys_, &pb::KeyService::Stub::CreateKey,
               create, created),
            "PERMISSION_DENIED");
  ASSERT_TRUE(WaitFor("user:eve", "KeyService/CreateKey"));
  EXPECT_FALSE(Find("user:eve", "KeyService/CreateKey", "workspaces/acme"));
}

TEST_P(RefusedCallsTest, AFloodMakesFewEntriesAndEveryCallIsStillRefused) {
  pb::CreateKeyRequest create;
  create.set_parent("workspaces/acme");
  pb::CreateKeyResponse created;
  const int64_t begun_us = NowUs();
  for (int i = 0; i < 1000; ++i) {
    // Each call has another caller: many names do not get around the bound.
    const Identity caller = Person(Role::ROLE_VIEWER, "v" + std::to_string(i));
    ASSERT_EQ(As(caller, *keys_, &pb::KeyService::Stub::CreateKey, create, created),
              "PERMISSION_DENIED");
  }
  ASSERT_TRUE(WaitFor("user:v0", "KeyService/CreateKey"));
  // Refusals beyond the bound are one entry with a count.
  EXPECT_TRUE(WaitUntil(
      [&] {
        for (const pb::AuditEntry& entry : Refusals()) {
          if (entry.actor() == "policy:refused_calls") return true;
        }
        return false;
      },
      20'000, 100));
  const auto minutes = static_cast<size_t>((NowUs() - begun_us) / 60'000'000);
  EXPECT_LE(Refusals().size(), 101 * (minutes + 2));
}

TEST_P(RefusedCallsTest, OverHttpAsAPersonWithASession) {
  const Account anna = NewAccount("anna@example.com");
  const int port = cluster_->dashboard_port();
  const std::string token = anna.link.substr(anna.link.find("token=") + 6);
  const HttpResponse signed_in =
      Http(port, "POST", "/session/v1/link",
           {{"content-type", "application/json"}, {"sec-fetch-site", "same-origin"}},
           R"({"token":")" + token + R"(","new_password":"correct horse battery"})");
  ASSERT_EQ(signed_in.status, 200) << signed_in.body;
  const std::string set = signed_in.header("set-cookie");
  const std::string cookie = set.substr(0, set.find(';'));
  const HttpResponse refused =
      Http(port, "GET", "/admin/v1/workspaces/acme/balance", {{"cookie", cookie}});
  EXPECT_EQ(refused.status, 403) << refused.body;
  const auto entry = WaitFor("user:" + anna.user_id, "LedgerService/GetBalance");
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->address(), "127.0.0.1");
}

}  // namespace
}  // namespace tollgate::test
