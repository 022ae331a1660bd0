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
  // Actor in the audit log. "user:ID", "token:ID" or "policy:NAME" as stated by the dashboard;
  // "cert:NAME" or "local:NAME" for the operator's command line; "unverified:NAME" or
  // "address:ADDRESS" for an unknown caller.
  std::string actor;
  // Address of the client; "" when it is unknown.
  std::string address;
  // Whether the caller is known to be this person: by a client certificate, or by a session that
  // the dashboard has checked. Over a unix socket any process may say any name; plain TCP is
  // trusted like the dashboard where insecure_plaintext is set.
  bool verified = false;
  // The operator's command line, or the dashboard's login_token. May call every method.
  bool installation = false;
  // May read everything, and call the methods whose rule allows operators. A token needs the scope
  // kOperatorScope for it.
  bool platform_operator = false;
  // The caller signed in at most five minutes ago. A client certificate or a unix socket of this
  // machine counts as fresh on every call.
  bool fresh = false;
  bool by_token = false;
  // A support session, which may only read.
  bool support = false;
  // Set only for a person or their token.
  std::string user_id;
  std::string display_name;
  std::string session_id;
  std::map<std::string, Role> roles;  // by workspace
  // Scopes of a token; see Identity.
  std::vector<std::string> scopes;

  // Set by Admit: method ("tollgate.admin.v1.KeyService/GetKey"); request_id ("" if missing or
  // malformed); workspace of the request ("" for none); own_only: the caller may act only on what
  // they created (or on themselves), which the handler checks.
  std::string method;
  std::string request_id;
  std::string workspace;
  bool own_only = false;
};

// Metadata key of the operator's name. Trusted only over unix sockets and within the process, where
// the operating system controls access.
inline constexpr char kOperatorKey[] = "tollgate-operator";
// Metadata key of a serialized common.v1.Identity. Accepted only from peers that may speak for
// people: this process, a unix socket, the certificate of svc/dashboard, and every peer over plain
// TCP, which is served only where insecure_plaintext is set.
inline constexpr char kIdentityKey[] = "tollgate-identity-bin";

// The token scope that stands for the rights of a platform operator.
inline constexpr char kOperatorScope[] = "operator";

// A sign-in is fresh for five minutes.
inline constexpr int64_t kFreshUs = 300'000'000;
bool IsFresh(int64_t signed_in_us, int64_t now_us);

// UNAUTHENTICATED for an identity that is missing or cannot be read, PERMISSION_DENIED for a
// process that may not make admin calls.
AdminResult<Caller> CallerOf(const grpc::ServerContextBase& context);

}  // namespace tollgate::admin
