// Which services may call billing's methods (common/rpc/callers.h): a gateway opens holds and
// releases those that reached no router, a router extends and settles them.
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
    // Heartbeats, extensions and settlements, including those from the router's outbox after a
    // restart.
    {"tollgate.billing.v1.MeteringService/Meter", rpc::kInferenceRouter},
    {"tollgate.billing.v1.MeteringService/MeterCalls", rpc::kInferenceRouter},
    {"tollgate.billing.v1.MeteringService/TakeLease", rpc::kInferenceRouter},
    {"tollgate.billing.v1.LeaseRecallService/WatchLeaseRecalls", rpc::kInferenceRouter},
};

// Methods that other services may call at the admin address.
inline constexpr rpc::MethodCallers kAdminCallers[] = {
    // auth opens the wallet of each workspace that it creates (decision 64).
    {"tollgate.admin.v1.LedgerService/OpenWallet", rpc::kAdmins | rpc::kAuth},
    // auth closes no workspace that has credit, and none whose cards could be charged.
    {"tollgate.billing.v1.ClosingService/PrepareClose", rpc::kAuth},
    {"tollgate.billing.v1.KeySpendService/ListKeySpend", rpc::kAuth},
    {"tollgate.billing.v1.SummaryService/ReadSummary", rpc::kDashboard},
    // auth copies the audit entries into its audit log (decision 56).
    {"tollgate.billing.v1.AuditSourceService/ReadAuditEntries", rpc::kAuth},
};

}  // namespace tollgate::billing
