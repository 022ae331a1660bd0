// Who makes an admin call (decision 57).
#pragma once

#include <grpcpp/server_context.h>

#include <string>

namespace tollgate::admin {

struct Caller {
  // For the audit log: "cert:NAME", "local:NAME" or "address:ADDRESS".
  std::string actor;
  // By a client certificate, or over a socket that only this machine reaches.
  bool known = false;
};

// The metadata key of the operator's name. It counts over unix sockets and within the process only,
// whose access the operating system controls.
inline constexpr char kOperatorKey[] = "tollgate-operator";

Caller CallerOf(const grpc::ServerContextBase& context);

}  // namespace tollgate::admin
