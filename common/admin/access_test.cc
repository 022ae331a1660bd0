#include "common/admin/access.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <mutex>

#include "common/base/clock.h"
#include "tollgate/admin/v1/ledger.grpc.pb.h"
#include "tollgate/admin/v1/payments.pb.h"

namespace tollgate::admin {
namespace {

namespace pb = tollgate::admin::v1;
using common::v1::Identity;

Caller Member(Role role) {
  Caller caller;
  caller.actor = "user:u1";
  caller.user_id = "u1";
  caller.roles["acme"] = role;
  caller.fresh = true;
  return caller;
}

std::string ReasonOf(const AdminResult<Caller>& result) {
  return result.ok() ? "" : result.error().reason;
}
std::string Ask(const Caller& caller, std::string_view method, const std::string& workspace,
                bool reads = false) {
  return ReasonOf(Check(caller, RuleOf(method), workspace, reads));
}

TEST(AccessTest, AMemberMayWhatTheRoleMayAndNothingElsewhere) {
  const Caller billing = Member(Role::ROLE_BILLING);
  EXPECT_EQ(Ask(billing, "PaymentService/CreatePayment", "acme"), "");
  EXPECT_EQ(Ask(billing, "LedgerService/UpdateCap", "acme"), "PERMISSION_DENIED");
  EXPECT_EQ(Ask(billing, "PaymentService/CreatePayment", "other"), "PERMISSION_DENIED");
  EXPECT_EQ(Ask(billing, "DeadLetterService/ListDeadLetters", ""), "PERMISSION_DENIED");
  EXPECT_EQ(Ask(billing, "UserService/GetUser", ""), "");
  EXPECT_EQ(ReasonOf(Check(billing, nullptr, "acme", true)), "PERMISSION_DENIED")
      << "a method without a row is refused";
  const auto denied = Check(billing, RuleOf("LedgerService/UpdateCap"), "acme", false);
  EXPECT_EQ(denied.error().metadata.at("roles"), "owner");
}

TEST(AccessTest, OnlyWhatIsOnesOwnIsToldToTheHandler) {
  const auto developer =
      Check(Member(Role::ROLE_DEVELOPER), RuleOf("KeyService/RevokeKey"), "acme", false);
  ASSERT_TRUE(developer.ok());
  EXPECT_TRUE(developer->own_only);
  EXPECT_EQ(developer->workspace, "acme");
  const auto admin = Check(Member(Role::ROLE_ADMIN), RuleOf("KeyService/RevokeKey"), "acme", false);
  ASSERT_TRUE(admin.ok());
  EXPECT_FALSE(admin->own_only);
}

TEST(AccessTest, DangerousActsWantAFreshSignIn) {
  Caller owner = Member(Role::ROLE_OWNER);
  EXPECT_EQ(Ask(owner, "LedgerService/UpdateCap", "acme"), "");
  owner.fresh = false;
  EXPECT_EQ(Ask(owner, "LedgerService/UpdateCap", "acme"), "STEP_UP_REQUIRED");
  EXPECT_EQ(Ask(owner, "LedgerService/GetCap", "acme", true), "");
  const int64_t now_us = 10'000'000'000;
  EXPECT_TRUE(IsFresh(now_us - kFreshUs + 1, now_us));
  EXPECT_FALSE(IsFresh(now_us - kFreshUs, now_us));
  EXPECT_FALSE(IsFresh(0, now_us));
  EXPECT_FALSE(IsFresh(now_us + 3600'000'000, now_us)) << "a sign-in in the future is not fresh";
}

TEST(AccessTest, AnOperatorReadsEverythingAndWritesWhereTheTableSaysSo) {
  Caller person;
  person.actor = "user:op";
  person.platform_operator = true;
  person.fresh = true;
  EXPECT_EQ(Ask(person, "LedgerService/GetBalance", "acme", true), "");
  EXPECT_EQ(Ask(person, "AdjustmentService/CreateAdjustment", "acme"), "");
  EXPECT_EQ(Ask(person, "LedgerService/UpdateCap", "acme"), "PERMISSION_DENIED");
  EXPECT_EQ(Ask(person, "MemberService/UpdateMember", "acme"), "PERMISSION_DENIED");
  EXPECT_EQ(Ask(person, "KeyService/CreateKey", "acme"), "PERMISSION_DENIED");
  Caller installation = person;
  installation.installation = true;
  EXPECT_EQ(Ask(installation, "LedgerService/UpdateCap", "acme"), "");
  EXPECT_EQ(Ask(installation, "KeyService/CreateKey", "acme"), "");
}

TEST(AccessTest, ATokenMayWhatItsPersonAndItsScopesMay) {
  Caller token = Member(Role::ROLE_OWNER);
  token.by_token = true;
  token.fresh = false;
  token.roles["second"] = Role::ROLE_OWNER;
  EXPECT_EQ(Ask(token, "LedgerService/GetBalance", "acme", true), "PERMISSION_DENIED")
      << "a token without scopes has no rights";
  token.scopes = {"developer"};
  EXPECT_EQ(Ask(token, "KeyService/CreateKey", "acme"), "");
  EXPECT_EQ(Ask(token, "PaymentService/CreatePayment", "acme"), "PERMISSION_DENIED");
  EXPECT_EQ(Ask(token, "LedgerService/GetBalance", "second", true), "");
  token.scopes = {"owner", "workspaces/acme"};
  EXPECT_EQ(Ask(token, "PaymentService/CreatePayment", "acme"), "");
  EXPECT_EQ(Ask(token, "PaymentService/CreatePayment", "second"), "PERMISSION_DENIED");
  EXPECT_EQ(Ask(token, "LedgerService/UpdateCap", "acme"), "STEP_UP_REQUIRED") << "never a step-up";
  EXPECT_EQ(Ask(token, "UserService/CreateToken", ""), "PERMISSION_DENIED")
      << "a token cannot create tokens";
  token.roles["acme"] = Role::ROLE_VIEWER;
  EXPECT_EQ(Ask(token, "PaymentService/CreatePayment", "acme"), "PERMISSION_DENIED")
      << "scopes add nothing to the person's role";
  token.platform_operator = true;
  EXPECT_EQ(Ask(token, "DeadLetterService/ListDeadLetters", "", true), "PERMISSION_DENIED");
  token.scopes = {"operator"};
  EXPECT_EQ(Ask(token, "DeadLetterService/ListDeadLetters", "", true), "");
}

// The owner may do it, but not the owner's token with a lesser scope.
TEST(AccessTest, AScopeBoundsTheRightAndNotOnlyTheMethod) {
  Caller token = Member(Role::ROLE_OWNER);
  token.by_token = true;
  token.fresh = false;
  token.scopes = {"developer", "viewer"};
  auto developer = Check(token, RuleOf("KeyService/RevokeKey"), "acme", false);
  ASSERT_TRUE(developer.ok());
  EXPECT_TRUE(developer->own_only) << "a developer may revoke their own keys";
  token.scopes = {"developer", "admin"};
  auto admin = Check(token, RuleOf("KeyService/RevokeKey"), "acme", false);
  ASSERT_TRUE(admin.ok());
  EXPECT_FALSE(admin->own_only) << "the best scope counts";
  token.roles["acme"] = Role::ROLE_DEVELOPER;
  auto lesser = Check(token, RuleOf("KeyService/RevokeKey"), "acme", false);
  ASSERT_TRUE(lesser.ok());
  EXPECT_TRUE(lesser->own_only) << "scopes add nothing to the person's role";
}

TEST(AccessTest, TheRoleOfATokenIsTheLowerOfMembershipAndScope) {
  Caller caller = Member(Role::ROLE_OWNER);
  caller.workspace = "acme";
  EXPECT_EQ(ActingRole(caller), Role::ROLE_OWNER);
  caller.by_token = true;
  EXPECT_EQ(ActingRole(caller), Role::ROLE_UNSPECIFIED) << "a token without scopes has no rights";
  caller.scopes = {"workspaces/acme", "developer", "admin"};
  EXPECT_EQ(ActingRole(caller), Role::ROLE_ADMIN);
  caller.roles["acme"] = Role::ROLE_VIEWER;
  EXPECT_EQ(ActingRole(caller), Role::ROLE_VIEWER);
  caller.workspace = "other";
  EXPECT_EQ(ActingRole(caller), Role::ROLE_UNSPECIFIED);
  caller.installation = true;
  EXPECT_EQ(ActingRole(caller), Role::ROLE_OWNER);
}

TEST(AccessTest, ASupportSessionOnlyReads) {
  Caller support;
  support.actor = "user:op";
  support.platform_operator = support.fresh = support.support = true;
  EXPECT_EQ(Ask(support, "LedgerService/GetBalance", "acme", true), "");
  EXPECT_EQ(Ask(support, "AdjustmentService/CreateAdjustment", "acme", false), "PERMISSION_DENIED");
}

TEST(AccessTest, TheWorkspaceIsThatOfTheParentTheNameOrTheResource) {
  pb::ListTransactionsRequest list;
  list.set_parent("workspaces/acme");
  EXPECT_EQ(NameOf(list).name, "workspaces/acme");
  pb::GetCapRequest get;
  get.set_name("workspaces/acme/cap");
  EXPECT_EQ(NameOf(get).field, "name");
  pb::UpdateAutoReloadRequest update;
  update.mutable_auto_reload()->set_name("workspaces/acme/autoReload");
  EXPECT_EQ(NameOf(update).field, "auto_reload.name");
  EXPECT_EQ(NameOf(update).name, "workspaces/acme/autoReload");
  pb::CreatePaymentRequest create;
  create.set_parent("workspaces/acme");
  create.mutable_payment()->set_name("workspaces/other/payments/x");
  EXPECT_EQ(NameOf(create).name, "workspaces/acme") << "the parent names the workspace";
  EXPECT_EQ(WorkspaceOfName("workspaces/acme"), "acme");
  EXPECT_EQ(WorkspaceOfName("workspaces/acme/keys/k"), "acme");
  for (const char* bad : {"", "workspaces", "workspaces/", "workspaces//keys", "workspaces/-/keys",
                          "workspaces/ACME", "keys/acme", "xworkspaces/acme"}) {
    EXPECT_EQ(WorkspaceOfName(bad), std::nullopt) << bad;
  }
  EXPECT_TRUE(
      Reads(*pb::GetCapRequest::descriptor()->file()->service(0)->FindMethodByName("GetCap")));
  EXPECT_FALSE(
      Reads(*pb::GetCapRequest::descriptor()->file()->service(0)->FindMethodByName("UpdateCap")));
}

// Two methods that respond with the result of Admit.
class Books : public pb::LedgerService::CallbackService {
 public:
  grpc::ServerUnaryReactor* GetBalance(grpc::CallbackServerContext* context,
                                       const pb::GetBalanceRequest* request,
                                       pb::Balance*) override {
    return Answer(context, *request);
  }
  grpc::ServerUnaryReactor* UpdateCap(grpc::CallbackServerContext* context,
                                      const pb::UpdateCapRequest* request, pb::Cap*) override {
    return Answer(context, *request);
  }
  grpc::ServerUnaryReactor* RepairClock(grpc::CallbackServerContext* context,
                                        const pb::RepairClockRequest* request,
                                        pb::RepairClockResponse*) override {
    return Answer(context, *request);
  }
  Caller last() {
    std::lock_guard lock(mutex_);
    return last_;
  }

 private:
  grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context,
                                   const google::protobuf::Message& request) {
    auto* reactor = context->DefaultReactor();
    auto caller = Admit(*context, request);
    if (caller.ok()) {
      std::lock_guard lock(mutex_);
      last_ = *caller;
    }
    reactor->Finish(ToStatus(caller));
    return reactor;
  }
  std::mutex mutex_;
  Caller last_;
};

class AdmitTest : public ::testing::Test {
 protected:
  void SetUp() override {
    socket_ = (std::filesystem::temp_directory_path() /
               ("tollgate-admit-" + std::to_string(getpid()) + ".sock"))
                  .string();
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.AddListeningPort("unix:" + socket_, grpc::InsecureServerCredentials());
    builder.RegisterService(&books_);
    server_ = builder.BuildAndStart();
    unix_ = grpc::CreateChannel("unix:" + socket_, grpc::InsecureChannelCredentials());
    tcp_ = grpc::CreateChannel("127.0.0.1:" + std::to_string(port),
                               grpc::InsecureChannelCredentials());
  }
  void TearDown() override {
    server_->Shutdown();
    std::filesystem::remove(socket_);
  }
  static Identity Person(Role role) {
    Identity identity;
    identity.set_actor("user:u1");
    identity.set_user_id("u1");
    identity.set_address("192.0.2.7");
    auto* membership = identity.add_memberships();
    membership->set_workspace("acme");
    membership->set_role(role);
    identity.set_signed_in_us(SystemClock::Get().WallUs());
    return identity;
  }
  grpc::Status Balance(const std::shared_ptr<grpc::Channel>& channel, const std::string& name,
                       const std::string& identity) {
    grpc::ClientContext context;
    if (!identity.empty()) context.AddMetadata(kIdentityKey, identity);
    pb::GetBalanceRequest request;
    request.set_name(name);
    pb::Balance balance;
    return pb::LedgerService::NewStub(channel)->GetBalance(&context, request, &balance);
  }
  grpc::Status Cap(const std::shared_ptr<grpc::Channel>& channel, const std::string& identity) {
    grpc::ClientContext context;
    if (!identity.empty()) context.AddMetadata(kIdentityKey, identity);
    pb::UpdateCapRequest request;
    request.mutable_cap()->set_name("workspaces/acme/cap");
    pb::Cap cap;
    return pb::LedgerService::NewStub(channel)->UpdateCap(&context, request, &cap);
  }

  std::string socket_;
  Books books_;
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> unix_, tcp_;
};

TEST_F(AdmitTest, ThePersonInTheMetadataIsChecked) {
  const std::string viewer = Person(Role::ROLE_VIEWER).SerializeAsString();
  for (const auto& channel : {unix_, tcp_, server_->InProcessChannel({})}) {
    EXPECT_TRUE(Balance(channel, "workspaces/acme/balance", viewer).ok());
    EXPECT_EQ(books_.last().actor, "user:u1");
    EXPECT_EQ(books_.last().address, "192.0.2.7");
    EXPECT_EQ(Cap(channel, viewer).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  }
  EXPECT_EQ(Balance(unix_, "workspaces/other/balance", viewer).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(Balance(unix_, "workspaces//balance", viewer).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  const std::string owner = Person(Role::ROLE_OWNER).SerializeAsString();
  EXPECT_TRUE(Cap(unix_, owner).ok());
  Identity stale = Person(Role::ROLE_OWNER);
  stale.set_signed_in_us(SystemClock::Get().WallUs() - kFreshUs);
  EXPECT_EQ(Cap(unix_, stale.SerializeAsString()).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
}

TEST_F(AdmitTest, NoTextOfARequestHoldsNul) {
  const std::string owner = Person(Role::ROLE_OWNER).SerializeAsString();
  const auto balance = Balance(unix_, std::string("workspaces/acme/balance\0", 24), owner);
  EXPECT_EQ(balance.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(balance.error_message().find("U+0000") != std::string::npos);
  // In a nested message, as in a list of messages.
  grpc::ClientContext context;
  context.AddMetadata(kIdentityKey, owner);
  pb::UpdateCapRequest request;
  request.mutable_cap()->set_name("workspaces/acme/cap");
  request.mutable_update_mask()->add_paths("cap");
  request.mutable_update_mask()->add_paths(std::string("a\0b", 3));
  pb::Cap cap;
  EXPECT_EQ(pb::LedgerService::NewStub(unix_)->UpdateCap(&context, request, &cap).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

// A request id of an invalid form or size is refused, and not logged.
TEST_F(AdmitTest, TheRequestIdOfTheCallerHasItsForm) {
  const auto update = [this](const std::string& id) {
    grpc::ClientContext context;
    context.AddMetadata(kIdentityKey, Person(Role::ROLE_OWNER).SerializeAsString());
    pb::UpdateCapRequest request;
    request.mutable_cap()->set_name("workspaces/acme/cap");
    request.set_request_id(id);
    pb::Cap cap;
    return pb::LedgerService::NewStub(unix_)->UpdateCap(&context, request, &cap).error_code();
  };
  EXPECT_EQ(update("r-1"), grpc::StatusCode::OK);
  EXPECT_EQ(books_.last().request_id, "r-1");
  EXPECT_EQ(update(""), grpc::StatusCode::OK) << "it is optional";
  EXPECT_EQ(books_.last().request_id, "");
  EXPECT_EQ(update(std::string(65, 'a')), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(update("a b"), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(AdmitTest, ARequiredRequestIdMustBeGiven) {
  pb::RepairClockRequest request;
  request.set_name("workspaces/acme/balance");
  const auto repair = [&] {
    grpc::ClientContext context;
    pb::RepairClockResponse response;
    return pb::LedgerService::NewStub(unix_)->RepairClock(&context, request, &response);
  };
  EXPECT_EQ(repair().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  request.set_request_id("r-1");
  EXPECT_TRUE(repair().ok());
  EXPECT_EQ(books_.last().request_id, "r-1");
}

TEST(NamePartsTest, ThePatternIsTheOneOfTheHttpRule) {
  pb::GetPaymentRequest request;
  request.set_name("workspaces/acme/payments/p1");
  EXPECT_EQ(*NameParts(request), (Parts{"acme", "p1"}));
  request.set_name("workspaces/acme/refunds/p1");
  EXPECT_EQ(NameParts(request).error().field, "name");
  pb::UpdateCapRequest update;
  update.mutable_cap()->set_name("workspaces/acme/cap");
  EXPECT_EQ(*NameParts(update), Parts{"acme"});
  update.mutable_cap()->set_name("workspaces/acme/balance");
  const auto refused = NameParts(update);
  EXPECT_EQ(refused.error().field, "cap.name");
  EXPECT_TRUE(refused.error().message.find("workspaces/*/cap") != std::string::npos);
}

// A token has operator rights only with the operator scope.
TEST_F(AdmitTest, ATokenIsAnOperatorsOnlyWithThatScope) {
  Identity token = Person(Role::ROLE_VIEWER);
  token.set_platform_operator(true);
  token.set_by_token(true);
  token.add_scopes("viewer");
  EXPECT_TRUE(Balance(unix_, "workspaces/acme/balance", token.SerializeAsString()).ok());
  EXPECT_FALSE(books_.last().platform_operator);
  EXPECT_EQ(Balance(unix_, "workspaces/other/balance", token.SerializeAsString()).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
  token.add_scopes("operator");
  EXPECT_TRUE(Balance(unix_, "workspaces/other/balance", token.SerializeAsString()).ok());
  EXPECT_TRUE(books_.last().platform_operator);
}

TEST_F(AdmitTest, AnIdentityThatCannotBeReadIsNobody) {
  EXPECT_EQ(Balance(unix_, "workspaces/acme/balance", "\xff\xff").error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(Balance(unix_, "workspaces/acme/balance", Identity().SerializeAsString() + "\x20\x01")
                .error_code(),
            grpc::StatusCode::UNAUTHENTICATED)
      << "an identity without an actor";
}

// Decision 57.
TEST_F(AdmitTest, WithoutAnIdentityTheCallerIsTheCommandLine) {
  EXPECT_TRUE(Cap(unix_, "").ok());
  EXPECT_EQ(books_.last().actor, "local:operator");
  EXPECT_TRUE(Balance(tcp_, "workspaces/acme/balance", "").ok());
  EXPECT_TRUE(books_.last().actor.starts_with("address:"));
  EXPECT_EQ(Cap(tcp_, "").error_code(), grpc::StatusCode::PERMISSION_DENIED)
      << "an unverified caller has no fresh sign-in";
}

}  // namespace
}  // namespace tollgate::admin
