#include "common/admin/roles.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor_database.h>
#include <gtest/gtest.h>

#include <set>

namespace tollgate::admin {
namespace {

using google::protobuf::DescriptorPool;

// Every method of the linked protos of tollgate.admin.v1.
std::vector<const google::protobuf::MethodDescriptor*> Methods() {
  std::vector<std::string> files;
  DescriptorPool::internal_generated_database()->FindAllFileNames(&files);
  std::vector<const google::protobuf::MethodDescriptor*> methods;
  for (const std::string& name : files) {
    if (!name.starts_with("tollgate/admin/v1/")) continue;
    const auto* file = DescriptorPool::generated_pool()->FindFileByName(name);
    for (int s = 0; s < file->service_count(); ++s) {
      for (int m = 0; m < file->service(s)->method_count(); ++m) {
        methods.push_back(file->service(s)->method(m));
      }
    }
  }
  return methods;
}

// Access is denied by default, so a method without a rule would be unusable.
TEST(RolesTest, EveryMethodHasARule) {
  const auto methods = Methods();
  EXPECT_GT(methods.size(), 40U) << "the protos of the admin API are not linked";
  for (const auto* method : methods) {
    EXPECT_NE(RuleOf(method->service()->name() + "/" + method->name()), nullptr)
        << method->full_name() << " has no option (rule) in its proto";
  }
}

// Admit finds the method by the type of its request.
TEST(RolesTest, EveryMethodHasARequestTypeOfItsOwn) {
  std::set<std::string> types;
  for (const auto* method : Methods()) {
    EXPECT_TRUE(types.insert(method->input_type()->full_name()).second) << method->full_name();
    EXPECT_EQ(method->input_type()->file(), method->file()) << method->full_name();
  }
}

// All rights, stated a second time. O owner, A admin, B billing, D developer, V viewer of the
// request's workspace; a small letter: only for their own. P: operators of the platform. *:
// everyone.
struct Right {
  std::string_view method;
  std::string_view who;
  bool step_up = false;
  bool no_tokens = false;
};
constexpr bool kStepUp = true, kNoTokens = true;
constexpr Right kRights[] = {
    {"MemberService/GetMember", "OABDVP"},
    {"MemberService/ListMembers", "OABDVP"},
    {"MemberService/UpdateMember", "O"},
    {"MemberService/DeleteMember", "OAbdv"},
    {"InvitationService/CreateInvitation", "OAP"},
    {"InvitationService/ListInvitations", "OAP"},
    {"InvitationService/DeleteInvitation", "OA"},
    {"InvitationService/AcceptInvitation", "*", !kStepUp, kNoTokens},
    {"UserService/GetUser", "*"},
    {"UserService/UpdateUser", "*", !kStepUp, kNoTokens},
    {"UserService/GetPermissions", "*"},
    {"UserService/ListSessions", "*"},
    {"UserService/DeleteSession", "*", !kStepUp, kNoTokens},
    {"UserService/RevokeOtherSessions", "*", !kStepUp, kNoTokens},
    {"UserService/CreateToken", "*", kStepUp, kNoTokens},
    {"UserService/ListTokens", "*"},
    {"UserService/DeleteToken", "*", !kStepUp, kNoTokens},
    {"UserService/ListUsers", "P"},
    {"UserService/CreateUser", "P", kStepUp, kNoTokens},
    {"UserService/CreateSignInLink", "P", kStepUp, kNoTokens},
    {"UserService/ResetTotp", "P", kStepUp, kNoTokens},
    {"SupportSessionService/CreateSupportSession", "P", kStepUp, kNoTokens},
    {"SupportSessionService/ListSupportSessions", "OAP"},
    {"SupportSessionService/EndSupportSession", "OAP", !kStepUp, kNoTokens},
    {"WorkspaceService/CreateWorkspace", "*P"},
    {"WorkspaceService/GetWorkspace", "OABDVP"},
    {"WorkspaceService/ListWorkspaces", "*P"},
    {"WorkspaceService/UpdateWorkspace", "OA"},
    {"WorkspaceService/CloseWorkspace", "O", kStepUp},
    {"WorkspaceService/ReopenWorkspace", "O", kStepUp},
    {"KeyService/CreateKey", "OAD"},
    {"KeyService/GetKey", "OABDVP"},
    {"KeyService/ListKeys", "OABDVP"},
    {"KeyService/UpdateKey", "OAd"},
    {"KeyService/DisableKey", "OAP"},
    {"KeyService/EnableKey", "OAP"},
    {"KeyService/RevokeKey", "OAdP"},
    {"KeyService/RotateKey", "OAd"},
    {"KeyService/ImportKeys", "P"},
    {"KeyService/ReportLeakedKey", "*"},
    {"AuditService/GetAuditEntry", "OAP"},
    {"AuditService/ListAuditEntries", "OAP"},
    {"AuditService/VerifyAuditEntries", "P"},
    {"AuditService/ExportAuditEntries", "OAP"},
    {"ModelService/GetModel", "*"},
    {"ModelService/ListModels", "*"},
    {"CatalogStatusService/GetCatalogStatus", "P"},
    {"CatalogStatusService/ListModelCapacity", "P"},
    {"LimitService/GetLimits", "OABDVP"},
    {"LimitService/GetLimitUsage", "OABDVP"},
    {"LimitService/GetKeyLimitUsage", "OABDVP"},
    {"LimitService/ListKeyLimitUsage", "OABDVP"},
    {"LimitService/UpdateLimits", "P"},
    {"LimitService/GetKeyModelLimits", "OABDVP"},
    {"LimitService/UpdateKeyModelLimits", "OA"},
    {"LimitService/GetPlan", "P"},
    {"LimitService/ListPlans", "P"},
    {"LimitService/UpdatePlan", "P"},
    {"SummaryService/GetSummary", "OABDVP"},
    {"EngineService/GetEngine", "P"},
    {"EngineService/ListEngines", "P"},
    {"EngineService/DrainEngine", "P"},
    {"EngineService/ResumeEngine", "P"},
    {"ProcessService/ListProcesses", "P"},
    {"LedgerService/GetBalance", "OABDVP"},
    {"LedgerService/OpenWallet", "P"},
    {"LedgerService/RepairClock", "P", kStepUp},
    {"LedgerService/GetCap", "OABDVP"},
    {"LedgerService/UpdateCap", "O", kStepUp},
    {"LedgerService/GetTransaction", "OABP"},
    {"LedgerService/ListTransactions", "OABP"},
    {"LedgerService/FreezeWorkspace", "P", kStepUp},
    {"LedgerService/UnfreezeWorkspace", "P", kStepUp},
    {"AdjustmentService/CreateCreditGrant", "P"},
    {"AdjustmentService/GetCreditGrant", "OABP"},
    {"AdjustmentService/ListCreditGrants", "OABP"},
    {"AdjustmentService/CreateAdjustment", "P"},
    {"AdjustmentService/GetAdjustment", "OABP"},
    {"AdjustmentService/ListAdjustments", "OABP"},
    {"AdjustmentService/ApproveAdjustment", "P", kStepUp},
    {"AdjustmentService/RejectAdjustment", "P", kStepUp},
    {"PaymentService/CreatePayment", "OB"},
    {"PaymentService/GetPayment", "OABP"},
    {"PaymentService/ListPayments", "OABP"},
    {"PaymentService/ConfirmPayment", "P", kStepUp},
    {"PaymentService/CancelPayment", "P"},
    {"PaymentService/RefundPayment", "P", kStepUp},
    {"PaymentService/ReconcilePayments", "P"},
    {"PaymentService/ListPaymentMethods", "OBP"},
    {"PaymentService/SetDefaultPaymentMethod", "OB"},
    {"PaymentService/DeletePaymentMethod", "OB"},
    {"PaymentService/SetupPaymentMethod", "OB", kStepUp},
    {"PaymentService/GetAutoReload", "OABP"},
    {"PaymentService/UpdateAutoReload", "OB", kStepUp},
    {"PaymentService/ResumeAutoReload", "OB"},
    {"StatementService/GetStatement", "OABP"},
    {"StatementService/ListStatements", "OABP"},
    {"StatementService/DownloadStatement", "OABP"},
    {"UsageService/QueryUsage", "OABDVP"},
    {"UsageService/GetRequest", "OABDP"},
    {"UsageService/ListRequests", "OABDP"},
    {"AlertService/GetAlertSettings", "OABP"},
    {"AlertService/UpdateAlertSettings", "OAB"},
    {"AlertService/CreateWebhook", "OA", kStepUp},
    {"AlertService/ListWebhooks", "OAP"},
    {"AlertService/DeleteWebhook", "OA"},
    {"AlertService/TestWebhook", "OA"},
    {"DeadLetterService/GetDeadLetter", "P"},
    {"DeadLetterService/ListDeadLetters", "P"},
    {"DeadLetterService/RetryDeadLetter", "P", kStepUp},
    {"DeadLetterService/WriteOffDeadLetter", "P", kStepUp},
    {"LedgerVerificationService/CreateLedgerVerification", "P"},
    {"LedgerVerificationService/GetLedgerVerification", "P"},
    {"LedgerVerificationService/ListLedgerVerifications", "P"},
    {"LedgerVerificationService/CancelLedgerVerification", "P"},
};

TEST(RolesTest, EachMethodIsOpenToThoseWhoMayCallIt) {
  for (const Right& right : kRights) {
    const Rule* rule = RuleOf(right.method);
    ASSERT_NE(rule, nullptr) << right.method;
    std::string who;
    for (const auto& [role, letter] : {std::pair(Role::ROLE_OWNER, 'O'),
                                       {Role::ROLE_ADMIN, 'A'},
                                       {Role::ROLE_BILLING, 'B'},
                                       {Role::ROLE_DEVELOPER, 'D'},
                                       {Role::ROLE_VIEWER, 'V'}}) {
      const Allowed allowed = RoleAllowed(*rule, role);
      if (allowed == Allowed::kYes) who += letter;
      if (allowed == Allowed::kOwn) who += static_cast<char>(letter | 0x20);
    }
    if (rule->everyone()) who += '*';
    if (rule->operators()) who += 'P';
    EXPECT_EQ(who, right.who) << right.method;
    EXPECT_EQ(rule->step_up(), right.step_up) << right.method;
    EXPECT_EQ(rule->no_tokens(), right.no_tokens) << right.method;
  }
  EXPECT_EQ(AllRules().size(), std::size(kRights)) << "state the rights of a new method here, too";
}

// Rules that hold whatever is added.
TEST(RolesTest, TheImportantRulesAreWhatTheyShouldBe) {
  const auto allowed = [](std::string_view method, Role role) {
    const Rule* rule = RuleOf(method);
    return rule == nullptr ? Allowed::kNo : RoleAllowed(*rule, role);
  };
  for (const Role role : {Role::ROLE_BILLING, Role::ROLE_DEVELOPER, Role::ROLE_VIEWER}) {
    EXPECT_EQ(allowed("MemberService/UpdateMember", role), Allowed::kNo);
    EXPECT_EQ(allowed("InvitationService/CreateInvitation", role), Allowed::kNo);
    EXPECT_EQ(allowed("MemberService/DeleteMember", role), Allowed::kOwn);
    EXPECT_EQ(allowed("LedgerService/UpdateCap", role), Allowed::kNo);
  }
  EXPECT_EQ(allowed("LedgerService/UpdateCap", Role::ROLE_ADMIN), Allowed::kNo);
  EXPECT_EQ(allowed("LedgerService/UpdateCap", Role::ROLE_OWNER), Allowed::kYes);
  EXPECT_EQ(allowed("MemberService/UpdateMember", Role::ROLE_ADMIN), Allowed::kNo);
  EXPECT_EQ(allowed("PaymentService/CreatePayment", Role::ROLE_BILLING), Allowed::kYes);
  EXPECT_EQ(allowed("PaymentService/CreatePayment", Role::ROLE_ADMIN), Allowed::kNo);
  EXPECT_EQ(allowed("KeyService/CreateKey", Role::ROLE_DEVELOPER), Allowed::kYes);
  EXPECT_EQ(allowed("KeyService/CreateKey", Role::ROLE_VIEWER), Allowed::kNo);
  EXPECT_EQ(allowed("KeyService/RevokeKey", Role::ROLE_DEVELOPER), Allowed::kOwn);
  EXPECT_EQ(allowed("LedgerService/GetBalance", Role::ROLE_VIEWER), Allowed::kYes);
  for (int r = common::v1::ROLE_OWNER; r <= common::v1::ROLE_VIEWER; ++r) {
    for (const char* method : {"AdjustmentService/CreateAdjustment", "LedgerService/RepairClock",
                               "LedgerService/FreezeWorkspace", "LimitService/UpdateLimits",
                               "AuditService/VerifyAuditEntries"}) {
      EXPECT_EQ(allowed(method, static_cast<Role>(r)), Allowed::kNo) << method;
    }
  }
  EXPECT_EQ(allowed("LedgerService/GetBalance", Role::ROLE_UNSPECIFIED), Allowed::kNo);
}

// A token or an invitation never grants more than its creator has.
TEST(RolesTest, ARoleCoversTheRolesBelowIt) {
  const std::set<std::pair<Role, Role>> covered = {
      {Role::ROLE_OWNER, Role::ROLE_OWNER},         {Role::ROLE_OWNER, Role::ROLE_ADMIN},
      {Role::ROLE_OWNER, Role::ROLE_BILLING},       {Role::ROLE_OWNER, Role::ROLE_DEVELOPER},
      {Role::ROLE_OWNER, Role::ROLE_VIEWER},        {Role::ROLE_ADMIN, Role::ROLE_ADMIN},
      {Role::ROLE_ADMIN, Role::ROLE_DEVELOPER},     {Role::ROLE_ADMIN, Role::ROLE_VIEWER},
      {Role::ROLE_BILLING, Role::ROLE_BILLING},     {Role::ROLE_BILLING, Role::ROLE_VIEWER},
      {Role::ROLE_DEVELOPER, Role::ROLE_DEVELOPER}, {Role::ROLE_DEVELOPER, Role::ROLE_VIEWER},
      {Role::ROLE_VIEWER, Role::ROLE_VIEWER}};
  for (int a = common::v1::ROLE_OWNER; a <= common::v1::ROLE_VIEWER; ++a) {
    for (int b = common::v1::ROLE_OWNER; b <= common::v1::ROLE_VIEWER; ++b) {
      const Role role = static_cast<Role>(a), lesser = static_cast<Role>(b);
      EXPECT_EQ(Covers(role, lesser), covered.contains({role, lesser}))
          << RoleName(role) << " and " << RoleName(lesser);
    }
  }
}

TEST(RolesTest, RolesHaveNames) {
  for (int r = common::v1::ROLE_OWNER; r <= common::v1::ROLE_VIEWER; ++r) {
    EXPECT_EQ(RoleNamed(RoleName(static_cast<Role>(r))), static_cast<Role>(r));
  }
  EXPECT_EQ(RoleNamed("root"), std::nullopt);
  EXPECT_EQ(RoleNamed(""), std::nullopt);
}

}  // namespace
}  // namespace tollgate::admin
