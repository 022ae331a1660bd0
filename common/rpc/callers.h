// Decides which process may call which method over TLS. Each service has a table of its methods and
// their callers (services/*/rpc/callers.h). A method without a row is refused.
//
//   inline constexpr rpc::MethodCallers kCallers[] = {
//       {"tollgate.billing.v1.BillingService/Authorize", rpc::kGateway},
//   };
//
// Calls within the process, over unix sockets and in plain text (host.insecure_plaintext) have no
// certificate and are not checked here.
#pragma once

#include <grpcpp/security/auth_metadata_processor.h>

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace grpc {
class Service;
}

namespace tollgate::rpc {

// A set of callers, for example kGateway | kDashboard.
using CallerSet = uint32_t;
inline constexpr CallerSet kAuth = 1 << 0;
inline constexpr CallerSet kBilling = 1 << 1;
inline constexpr CallerSet kCatalog = 1 << 2;
inline constexpr CallerSet kDashboard = 1 << 3;
inline constexpr CallerSet kGateway = 1 << 4;
inline constexpr CallerSet kInferenceRouter = 1 << 5;
inline constexpr CallerSet kRatelimit = 1 << 6;
// All operator certificates.
inline constexpr CallerSet kOperator = 1 << 7;

// Callers of admin services, which decide themselves what each person may do.
inline constexpr CallerSet kAdmins = kDashboard | kOperator;

// All processes of the deployment, and operators.
inline constexpr CallerSet kAll = (kOperator << 1) - 1;

struct MethodCallers {
  // "package.Service/Method", or a prefix and '*': "package.Service/*". A row for one method takes
  // precedence over prefixes, and a longer prefix over a shorter one.
  std::string_view method;
  CallerSet callers = 0;
};

// Health is not secret: clients ask their replicas for it (health_probe.h).
inline constexpr MethodCallers kHealthApi = {"grpc.health.v1.Health/*", kAll};
// The row of the public admin API.
inline constexpr MethodCallers kAdminApi = {"tollgate.admin.v1.*", kAdmins};

// The callers that a server admits.
struct CallerRules {
  std::vector<MethodCallers> rows;
  std::string trust_domain;
  // If not empty, only these names (SPIFFE URIs or DNS names) are admitted at all
  // (TlsConfig.allowed_callers).
  std::set<std::string> allowed_names;
};

// Applies the rules to each call of a server. A refusal is PERMISSION_DENIED, a counter and a log
// line.
std::shared_ptr<grpc::AuthMetadataProcessor> MakeCallerCheck(CallerRules rules);

// Lists the methods of these services ("package.Service") without a row, for a check at start. A
// service whose descriptor is not linked needs a row for all of its methods; otherwise its name is
// listed.
std::vector<std::string> MethodsWithoutRow(std::span<const std::string> services,
                                           std::span<const MethodCallers> rows);

}  // namespace tollgate::rpc
