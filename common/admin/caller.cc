#include "common/admin/caller.h"

#include "common/base/text.h"

namespace tollgate::admin {
namespace {

constexpr size_t kMaxName = 100;

}  // namespace

Caller CallerOf(const grpc::ServerContextBase& context) {
  const auto auth = context.auth_context();
  if (auth && auth->IsPeerAuthenticated()) {
    for (const grpc::string_ref& name : auth->GetPeerIdentity()) {
      return {"cert:" + ToValidUtf8({name.data(), name.size()}, kMaxName), true};
    }
  }
  const std::string peer = context.peer();
  const auto found = context.client_metadata().find(kOperatorKey);
  std::string name;
  if (found != context.client_metadata().end()) {
    name = ToValidUtf8({found->second.data(), found->second.size()}, kMaxName);
  }
  // A call within the process has no peer; gRPC 1.51 then says "unknown". TCP always has one.
  if (peer.starts_with("unix:") || peer.starts_with("inproc") || peer == "unknown") {
    return {"local:" + (name.empty() ? "operator" : name), true};
  }
  if (!name.empty()) return {"unverified:" + name, false};
  // Without the port, which differs from connection to connection.
  return {"address:" + ToValidUtf8(peer.substr(0, peer.rfind(':')), kMaxName), false};
}

}  // namespace tollgate::admin
