// Who makes an admin call (decision 57).
#pragma once

#include <grpcpp/server_context.h>

#include <map>
#include <string>
#include <vector>

#include "common/admin/failure.h"
#include "common/admin/roles.h"

namespace tollgate::admin {

struct Caller {
  // For the audit log: "user:ID", "token:ID" or "policy:NAME" by the dashboard; "cert:NAME" or
  // "local:NAME" for the operator's command line; what an unknown caller says: "unverified:NAME",
  // "address:ADDRESS".
  std::string actor;
  // Address of the client; "" when it is unknown.
  std::string address;
  // The operator's command line, or the dashboard's login_token: may call every method.
  bool installation = false;
  // Reads everything, and may call the methods with P in the table. A token only with the scope
  // kOperatorScope.
  bool platform_operator = false;
  // Proved who they are at most five minutes ago: a client certificate or a socket of this machine
  // counts as that on every call.
  bool fresh = false;
  bool by_token = false;
  // May only read.
  bool support = false;
  // Empty unless the caller is a person or their token.
  std::string user_id;
  std::string display_name;
  std::string session_id;
  std::map<std::string, Role> roles;  // by workspace
  // Of a token; see Identity.
  std::vector<std::string> scopes;

  // Set by Admit: the method ("tollgate.admin.v1.KeyService/GetKey"), the request's request_id
  // ("" for none, or one that is none by its form), the workspace of the request, "" for none, and
  // whether the caller may act only on what they made (or are) themselves, which the handler then
  // checks.
  std::string method;
  std::string request_id;
  std::string workspace;
  bool own_only = false;
};

// The metadata key of the operator's name. It makes a caller known over unix sockets and within the
// process only, whose access the operating system controls.
inline constexpr char kOperatorKey[] = "tollgate-operator";
// The metadata key of a serialized common.v1.Identity. It is believed from who may speak for
// people: this process, a unix socket, a peer with the certificate of svc/dashboard, and every peer
// over plain TCP, which is served only where insecure_plaintext is set.
inline constexpr char kIdentityKey[] = "tollgate-identity-bin";

// What stands for a platform operator's rights among the scopes of a token.
inline constexpr char kOperatorScope[] = "operator";

// A sign-in is fresh for five minutes.
inline constexpr int64_t kFreshUs = 300'000'000;
bool IsFresh(int64_t signed_in_us, int64_t now_us);

// UNAUTHENTICATED for an identity that is missing or cannot be read, PERMISSION_DENIED for a
// process that may not make admin calls.
AdminResult<Caller> CallerOf(const grpc::ServerContextBase& context);

}  // namespace tollgate::admin
