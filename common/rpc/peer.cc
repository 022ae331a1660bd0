#include "common/rpc/peer.h"

#include <grpc/grpc_security_constants.h>
#include <grpcpp/security/auth_context.h>
#include <grpcpp/server_context.h>

#include <algorithm>

#include "common/base/ascii.h"

namespace tollgate::rpc {
namespace {

constexpr std::string_view kScheme = "spiffe://";
constexpr std::string_view kServicePath = "svc/";
constexpr std::string_view kOperatorPath = "operator/";

bool IsNameText(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return IsAlnum(c) || c == '.' || c == '_' || c == '-';
  });
}

}  // namespace

std::optional<CertificateName> ParseCertificateName(std::string_view uri) {
  if (!uri.starts_with(kScheme)) return std::nullopt;
  uri.remove_prefix(kScheme.size());
  const size_t slash = uri.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  CertificateName parsed;
  parsed.domain = uri.substr(0, slash);
  uri.remove_prefix(slash + 1);
  if (uri.starts_with(kServicePath)) {
    parsed.kind = PeerKind::kService;
    parsed.name = uri.substr(kServicePath.size());
  } else if (uri.starts_with(kOperatorPath)) {
    parsed.kind = PeerKind::kOperator;
    parsed.name = uri.substr(kOperatorPath.size());
  }
  if (!IsNameText(parsed.domain) || !IsNameText(parsed.name)) return std::nullopt;
  return parsed;
}

std::string_view CertificateUri(const grpc::AuthContext& connection) {
  // gRPC sets this property only for a certificate with exactly one URI.
  const auto uris = connection.FindPropertyValues(GRPC_PEER_SPIFFE_ID_PROPERTY_NAME);
  return uris.size() == 1 ? std::string_view(uris[0].data(), uris[0].size()) : std::string_view();
}

Peer PeerOf(const grpc::ServerContextBase& context) {
  const auto connection = context.auth_context();
  if (connection && connection->IsPeerAuthenticated()) {
    const auto parsed = ParseCertificateName(CertificateUri(*connection));
    return parsed ? Peer{parsed->kind, std::string(parsed->name)} : Peer{};
  }
  const std::string address = context.peer();
  if (address.starts_with("unix:")) return {PeerKind::kLocalSocket, ""};
  // A call within the process has no peer, which gRPC 1.51 reports as "unknown". TCP calls always
  // have a peer.
  if (address.starts_with("inproc") || address == "unknown") return {PeerKind::kInProcess, ""};
  return {PeerKind::kPlainText, ""};
}

std::string ServiceUri(std::string_view trust_domain, std::string_view service) {
  return std::string(kScheme) + std::string(trust_domain) + "/" + std::string(kServicePath) +
         std::string(service);
}

}  // namespace tollgate::rpc
