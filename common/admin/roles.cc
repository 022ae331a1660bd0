#include "common/admin/roles.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace tollgate::admin {
namespace {

constexpr bool kStepUp = true;

// Sorted by area. A platform operator may read everything and call the methods with P. The
// operator's command line may call every method (common/admin/access.h).
constexpr MethodRule kRules[] = {
    // People of a workspace.
    {"MemberService/GetMember", "OABDVP"},
    {"MemberService/ListMembers", "OABDVP"},
    {"MemberService/UpdateMember", "O"},  // to owner: also a fresh sign-in
    {"MemberService/DeleteMember", "OAbdv"},
    {"InvitationService/CreateInvitation", "OAP"},  // owners and admins: O and P
    {"InvitationService/ListInvitations", "OAP"},
    {"InvitationService/DeleteInvitation", "OA"},
    {"InvitationService/AcceptInvitation", "*", !kStepUp, true},
    // The caller's own account.
    {"UserService/GetUser", "*"},                     // others: P
    {"UserService/UpdateUser", "*", !kStepUp, true},  // others: P with a fresh sign-in
    {"UserService/GetPermissions", "*"},
    {"UserService/ListSessions", "*"},
    {"UserService/DeleteSession", "*", !kStepUp, true},
    {"UserService/RevokeOtherSessions", "*", !kStepUp, true},
    {"UserService/CreateToken", "*", kStepUp, true},
    {"UserService/ListTokens", "*"},
    {"UserService/DeleteToken", "*", !kStepUp, true},
    // All users of the installation.
    {"UserService/ListUsers", "P"},
    {"UserService/CreateUser", "P", kStepUp, true},
    {"UserService/CreateSignInLink", "P", kStepUp, true},
    {"UserService/ResetTotp", "P", kStepUp, true},
    // An operator of the platform sees a workspace as its owner does. The workspace's members see
    // the session and may end it.
    {"SupportSessionService/CreateSupportSession", "P", kStepUp, true},
    {"SupportSessionService/ListSupportSessions", "OAP"},
    {"SupportSessionService/EndSupportSession", "OAP", !kStepUp, true},

    // Workspaces. A person may create one where self-service is on; the handler checks it.
    {"WorkspaceService/CreateWorkspace", "*P"},
    {"WorkspaceService/GetWorkspace", "OABDVP"},
    {"WorkspaceService/ListWorkspaces", "*P"},
    {"WorkspaceService/UpdateWorkspace", "OA"},
    {"WorkspaceService/CloseWorkspace", "O", kStepUp},
    {"WorkspaceService/ReopenWorkspace", "O", kStepUp},
    // Keys.
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
    // The audit log. Without a workspace the request means the whole log, which needs P.
    {"AuditService/GetAuditEntry", "OAP"},
    {"AuditService/ListAuditEntries", "OAP"},
    {"AuditService/VerifyAuditEntries", "P"},
    {"AuditService/ExportAuditEntries", "OAP"},
    // Models and limits.
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

    // Figures that the dashboard collects from several processes.
    {"SummaryService/GetSummary", "OABDVP"},
    {"EngineService/GetEngine", "P"},
    {"EngineService/ListEngines", "P"},
    {"EngineService/DrainEngine", "P"},
    {"EngineService/ResumeEngine", "P"},
    {"ProcessService/ListProcesses", "P"},

    // Money.
    {"LedgerService/GetBalance", "OABDVP"},
    {"LedgerService/OpenWallet", "P"},
    {"LedgerService/RepairClock", "P", kStepUp},
    {"LedgerService/GetCap", "OABDVP"},
    {"LedgerService/UpdateCap", "O", kStepUp},
    {"LedgerService/GetTransaction", "OABP"},
    {"LedgerService/ListTransactions", "OABP"},
    {"LedgerService/FreezeWorkspace", "P", kStepUp},
    {"LedgerService/UnfreezeWorkspace", "P", kStepUp},
    // Grants and adjustments also require a fresh sign-in above a configured amount.
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

struct RoleRow {
  Role role;
  std::string_view name;
  char letter;
};
constexpr RoleRow kRoles[] = {
    {Role::ROLE_OWNER, "owner", 'O'},     {Role::ROLE_ADMIN, "admin", 'A'},
    {Role::ROLE_BILLING, "billing", 'B'}, {Role::ROLE_DEVELOPER, "developer", 'D'},
    {Role::ROLE_VIEWER, "viewer", 'V'},
};

}  // namespace

std::string_view RoleName(Role role) {
  for (const RoleRow& row : kRoles) {
    if (row.role == role) return row.name;
  }
  return "";
}

std::optional<Role> RoleNamed(std::string_view name) {
  for (const RoleRow& row : kRoles) {
    if (row.name == name) return row.role;
  }
  return std::nullopt;
}

std::span<const MethodRule> AllRules() { return kRules; }

const MethodRule* RuleOf(std::string_view method) {
  const auto* found = std::ranges::find(kRules, method, &MethodRule::method);
  return found == std::end(kRules) ? nullptr : found;
}

bool HasLetter(const MethodRule& rule, char letter) {
  return rule.who.find(letter) != std::string_view::npos;
}

Allowed RoleAllowed(const MethodRule& rule, Role role) {
  for (const RoleRow& row : kRoles) {
    if (row.role != role) continue;
    if (HasLetter(rule, row.letter)) return Allowed::kYes;
    const char own = static_cast<char>(std::tolower(row.letter));
    return HasLetter(rule, own) ? Allowed::kOwn : Allowed::kNo;
  }
  return Allowed::kNo;
}

bool Covers(Role role, Role lesser) {
  return std::ranges::all_of(kRules, [&](const MethodRule& rule) {
    return RoleAllowed(rule, role) >= RoleAllowed(rule, lesser);
  });
}

}  // namespace tollgate::admin
