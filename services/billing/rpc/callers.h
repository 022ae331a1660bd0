// Who may call the methods of billing between processes (common/rpc/callers.h): a gateway opens
// holds and gives back those that no router has, a router extends and settles them.
#pragma once

#include "common/rpc/callers.h"

namespace tollgate::billing {

inline constexpr rpc::MethodCallers kCallers[] = {
    {"tollgate.billing.v1.BillingService/Authorize", rpc::kGateway},
    {"tollgate.billing.v1.BillingService/AuthorizeCalls", rpc::kGateway},
    {"tollgate.billing.v1.BillingService/Void", rpc::kGateway},
    {"tollgate.billing.v1.BillingService/VoidCalls", rpc::kGateway},
    {"tollgate.billing.v1.BillingService/GetUsage", rpc::kGateway},
    {"tollgate.billing.v1.BillingService/GetReceipt", rpc::kGateway},
    {"tollgate.billing.v1.BillingService/StoreAnswer", rpc::kGateway},
    {"tollgate.billing.v1.BillingService/GetAnswer", rpc::kGateway},
    // Heartbeats, extensions and settlements, also those of its outbox after a restart.
    {"tollgate.billing.v1.MeteringService/Meter", rpc::kInferenceRouter},
    {"tollgate.billing.v1.MeteringService/MeterCalls", rpc::kInferenceRouter},
    {"tollgate.billing.v1.MeteringService/TakeLease", rpc::kInferenceRouter},
};

// What another service may call at the admin address.
inline constexpr rpc::MethodCallers kAdminCallers[] = {
    // auth opens the wallet of a workspace that it has created (decision 64).
    {"tollgate.admin.v1.LedgerService/OpenWallet", rpc::kAdmins | rpc::kAuth},
    // auth closes no workspace that has credit.
    {"tollgate.admin.v1.LedgerService/GetBalance", rpc::kAdmins | rpc::kAuth},
    {"tollgate.billing.v1.KeySpendService/ListKeySpend", rpc::kAuth},
    {"tollgate.billing.v1.SummaryService/ReadSummary", rpc::kDashboard},
    // auth copies the audit entries into its log (decision 56).
    {"tollgate.billing.v1.AuditSourceService/ReadAuditEntries", rpc::kAuth},
};

}  // namespace tollgate::billing
