// Which process may call which method over TLS. Each service has a table of its methods and their
// callers beside it (services/*/rpc/callers.h); a method without a row is refused.
//
//   inline constexpr rpc::MethodCallers kCallers[] = {
//       {"tollgate.billing.v1.BillingService/Authorize", rpc::kGateway},
//   };
//
// Calls within the process, over unix sockets and in plain text (host.insecure_plaintext) carry no
// certificate and are not judged here.
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

// A set of callers: kGateway | kDashboard.
using CallerSet = uint32_t;
inline constexpr CallerSet kAuth = 1 << 0;
inline constexpr CallerSet kBilling = 1 << 1;
inline constexpr CallerSet kCatalog = 1 << 2;
inline constexpr CallerSet kDashboard = 1 << 3;
inline constexpr CallerSet kGateway = 1 << 4;
inline constexpr CallerSet kInferenceRouter = 1 << 5;
inline constexpr CallerSet kRatelimit = 1 << 6;
// Every certificate of an operator.
inline constexpr CallerSet kOperator = 1 << 7;

// The callers of admin services. What each person may do there is a matter of those services.
inline constexpr CallerSet kAdmins = kDashboard | kOperator;

struct MethodCallers {
  // "package.Service/Method", or what its name starts with and '*': "package.Service/*". A row for
  // one method comes before a row for many, and of these the longest.
  std::string_view method;
  CallerSet callers = 0;
};

// The row of the public admin API.
inline constexpr MethodCallers kAdminApi = {"tollgate.admin.v1.*", kAdmins};

// Who may call a server.
struct CallerRules {
  std::vector<MethodCallers> rows;
  std::string trust_domain;
  // If not empty: the only names, SPIFFE URIs or DNS names, that are let in at all
  // (TlsConfig.allowed_callers).
  std::set<std::string> allowed_names;
};

// Applies the rules to each call of a server: PERMISSION_DENIED, a counter and a line in the log.
std::shared_ptr<grpc::AuthMetadataProcessor> MakeCallerCheck(CallerRules rules);

// The methods of these services ("package.Service") without a row, for a check at start. Services
// that this program has no description of are listed by their name.
std::vector<std::string> MethodsWithoutRow(std::span<const std::string> services,
                                           std::span<const MethodCallers> rows);

}  // namespace tollgate::rpc
