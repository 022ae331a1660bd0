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
  // A call within the process has no peer; gRPC 1.51 then says "unknown". TCP always has one.
  if (peer.starts_with("unix:") || peer.starts_with("inproc") || peer == "unknown") {
    const auto found = context.client_metadata().find(kOperatorKey);
    std::string name = "operator";
    if (found != context.client_metadata().end() && !found->second.empty()) {
      name = ToValidUtf8({found->second.data(), found->second.size()}, kMaxName);
    }
    return {"local:" + name, true};
  }
  return {"address:" + ToValidUtf8(peer, kMaxName), false};
}

}  // namespace tollgate::admin
