#include "common/admin/caller.h"

#include <algorithm>
#include <optional>

#include "common/base/clock.h"
#include "common/base/text.h"
#include "common/rpc/peer.h"

namespace tollgate::admin {
namespace {

constexpr size_t kMaxName = 100;
// Allowance for clocks of different machines.
constexpr int64_t kMaxSkewUs = 60'000'000;

Fail<Failure> Unauthenticated(std::string message) {
  return Fail{Failure{.code = grpc::StatusCode::UNAUTHENTICATED,
                      .reason = "UNAUTHENTICATED",
                      .message = std::move(message)}};
}

std::optional<std::string> Metadata(const grpc::ServerContextBase& context, const char* key) {
  const auto found = context.client_metadata().find(key);
  if (found == context.client_metadata().end()) return std::nullopt;
  return std::string(found->second.data(), found->second.size());
}

// verified: the sender may be trusted to have checked the person.
AdminResult<Caller> FromIdentity(const std::string& bytes, bool verified) {
  common::v1::Identity identity;
  if (!identity.ParseFromString(bytes) || identity.actor().empty()) {
    return Unauthenticated("the caller's identity sent by the dashboard cannot be read");
  }
  Caller caller;
  caller.actor = ToValidUtf8(identity.actor(), kMaxName);
  caller.address = ToValidUtf8(identity.address(), kMaxName);
  caller.installation = identity.installation();
  caller.by_token = identity.by_token();
  caller.fresh = !caller.by_token && IsFresh(identity.signed_in_us(), SystemClock::Get().WallUs());
  caller.support = identity.support();
  caller.user_id = identity.user_id();
  caller.verified = verified && !caller.user_id.empty();
  caller.display_name = identity.display_name();
  caller.session_id = identity.session_id();
  for (const auto& membership : identity.memberships()) {
    caller.roles.emplace(membership.workspace(), membership.role());
  }
  caller.scopes.assign(identity.scopes().begin(), identity.scopes().end());
  caller.platform_operator =
      identity.platform_operator() &&
      (!caller.by_token || std::ranges::find(caller.scopes, kOperatorScope) != caller.scopes.end());
  return caller;
}

// The operator's command line.
Caller Installation(std::string actor, bool fresh) {
  Caller caller;
  caller.actor = std::move(actor);
  caller.installation = true;
  caller.platform_operator = true;
  caller.fresh = fresh;
  return caller;
}

}  // namespace

bool IsFresh(int64_t signed_in_us, int64_t now_us) {
  return signed_in_us > now_us - kFreshUs && signed_in_us < now_us + kMaxSkewUs;
}

AdminResult<Caller> CallerOf(const grpc::ServerContextBase& context) {
  const rpc::Peer peer = rpc::PeerOf(context);
  const std::string operator_name =
      ToValidUtf8(Metadata(context, kOperatorKey).value_or(""), kMaxName);
  const auto identity = Metadata(context, kIdentityKey);
  switch (peer.kind) {
    case rpc::PeerKind::kService:
      // Limited to opening a wallet by billing's list of callers.
      if (peer.name == "auth") return Installation("service:auth", false);
      if (peer.name != "dashboard") {
        return PermissionDenied("CALLER_NOT_ALLOWED",
                                "the process " + peer.name + " may not make admin calls");
      }
      if (!identity) return Unauthenticated("the dashboard did not send the caller's identity");
      return FromIdentity(*identity, true);
    case rpc::PeerKind::kOperator: {
      Caller caller = Installation("cert:" + peer.name, true);
      caller.verified = true;
      return caller;
    }
    case rpc::PeerKind::kInProcess:
    case rpc::PeerKind::kLocalSocket:
      // Any process of this machine may say anything over a unix socket.
      if (identity) return FromIdentity(*identity, peer.kind == rpc::PeerKind::kInProcess);
      return Installation("local:" + (operator_name.empty() ? "operator" : operator_name), true);
    case rpc::PeerKind::kUnknown:
      return PermissionDenied(
          "CALLER_NOT_ALLOWED",
          "the caller's certificate names neither an operator nor the dashboard");
    case rpc::PeerKind::kPlainText:
      break;
  }
  if (identity) return FromIdentity(*identity, true);
  if (!operator_name.empty()) return Installation("unverified:" + operator_name, false);
  // Without the port, which changes with every connection.
  const std::string address = context.peer();
  return Installation("address:" + ToValidUtf8(address.substr(0, address.rfind(':')), kMaxName),
                      false);
}

}  // namespace tollgate::admin
