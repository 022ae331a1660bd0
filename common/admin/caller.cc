#include "common/admin/caller.h"

#include <optional>

#include "common/base/clock.h"
#include "common/base/text.h"

namespace tollgate::admin {
namespace {

constexpr size_t kMaxName = 100;
// Clocks of two machines differ by less.
constexpr int64_t kMaxSkewUs = 60'000'000;

// Where a call comes from.
struct Peer {
  enum class Kind { kLocal, kDashboard, kOtherService, kCertificate, kPlain };
  Kind kind = Kind::kPlain;
  std::string name;  // of a certificate
};

Peer PeerOf(const grpc::ServerContextBase& context) {
  const auto auth = context.auth_context();
  if (auth && auth->IsPeerAuthenticated()) {
    Peer peer{.kind = Peer::Kind::kCertificate};
    for (const char* property : {"peer_spiffe_id", "x509_subject_alternative_name"}) {
      for (const grpc::string_ref& value : auth->FindPropertyValues(property)) {
        const std::string_view name(value.data(), value.size());
        if (const size_t at = name.find("/svc/"); at != std::string_view::npos) {
          const bool dashboard = name.substr(at) == "/svc/dashboard";
          return {dashboard ? Peer::Kind::kDashboard : Peer::Kind::kOtherService,
                  std::string(name)};
        }
        if (peer.name.empty()) peer.name = ToValidUtf8(name, kMaxName);
      }
    }
    if (!peer.name.empty()) return peer;
  }
  // A call within the process has no peer; gRPC 1.51 then says "unknown". TCP always has one.
  const std::string address = context.peer();
  const bool local =
      address.starts_with("unix:") || address.starts_with("inproc") || address == "unknown";
  return {local ? Peer::Kind::kLocal : Peer::Kind::kPlain, ""};
}

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

AdminResult<Caller> FromIdentity(const std::string& bytes) {
  common::v1::Identity identity;
  if (!identity.ParseFromString(bytes) || identity.actor().empty()) {
    return Unauthenticated("the dashboard's statement of who calls cannot be read");
  }
  Caller caller;
  caller.actor = ToValidUtf8(identity.actor(), kMaxName);
  caller.address = ToValidUtf8(identity.address(), kMaxName);
  caller.installation = identity.installation();
  caller.platform_operator = identity.platform_operator();
  caller.by_token = identity.by_token();
  caller.fresh = !caller.by_token && IsFresh(identity.signed_in_us(), SystemClock::Get().WallUs());
  caller.support = identity.support();
  caller.user_id = identity.user_id();
  caller.display_name = identity.display_name();
  caller.session_id = identity.session_id();
  for (const auto& membership : identity.memberships()) {
    caller.roles.emplace(membership.workspace(), membership.role());
  }
  caller.scopes.assign(identity.scopes().begin(), identity.scopes().end());
  return caller;
}

// The operator's command line. "spiffe://tollgate/operator/anna" is "anna".
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
  const Peer peer = PeerOf(context);
  const std::string operator_name =
      ToValidUtf8(Metadata(context, kOperatorKey).value_or(""), kMaxName);
  const auto identity = Metadata(context, kIdentityKey);
  switch (peer.kind) {
    case Peer::Kind::kOtherService:
      // Reaches only what the list of callers of a service gives it: the opening of a wallet.
      if (peer.name.ends_with("/svc/auth")) return Installation("service:auth", false);
      return PermissionDenied("CALLER_NOT_ALLOWED",
                              "the process " + peer.name + " may not make admin calls");
    case Peer::Kind::kDashboard:
      if (!identity) return Unauthenticated("the dashboard did not say who calls");
      return FromIdentity(*identity);
    case Peer::Kind::kCertificate: {
      const size_t at = peer.name.find("/operator/");
      return Installation(
          "cert:" + (at == std::string::npos ? peer.name : peer.name.substr(at + 10)), true);
    }
    case Peer::Kind::kLocal:
      if (identity) return FromIdentity(*identity);
      return Installation("local:" + (operator_name.empty() ? "operator" : operator_name), true);
    case Peer::Kind::kPlain:
      break;
  }
  if (identity) return FromIdentity(*identity);
  if (!operator_name.empty()) return Installation("unverified:" + operator_name, false);
  // Without the port, which differs from connection to connection.
  const std::string address = context.peer();
  return Installation("address:" + ToValidUtf8(address.substr(0, address.rfind(':')), kMaxName),
                      false);
}

}  // namespace tollgate::admin
