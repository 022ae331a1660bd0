// Who is at the other end of a call between processes.
//
// A certificate carries one name, as a URI in its subject alternative names:
// spiffe://DOMAIN/svc/NAME for a process and spiffe://DOMAIN/operator/NAME for an operator.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace grpc {
class AuthContext;
class ServerContextBase;
}  // namespace grpc

namespace tollgate::rpc {

enum class PeerKind {
  kInProcess,    // a call within this process
  kLocalSocket,  // a unix socket, whose access the operating system controls
  kService,      // a certificate of a process
  kOperator,     // a certificate of an operator
  kUnknown,      // plain text over TCP, or a certificate with another name
};

struct Peer {
  PeerKind kind = PeerKind::kUnknown;
  // Of a service, for example "gateway", or of an operator; else empty.
  std::string name;
};

// Calls over TLS reach a service only if the name's domain is this deployment's (callers.h): a name
// that is returned here needs no further check.
Peer PeerOf(const grpc::ServerContextBase& context);

// The domain of a configuration without one (TlsConfig.trust_domain).
inline constexpr char kDefaultTrustDomain[] = "tollgate";

// A name of a certificate in its parts. NAME is of letters, digits, '.', '_' and '-'.
struct CertificateName {
  std::string_view domain;
  PeerKind kind = PeerKind::kUnknown;  // kService or kOperator
  std::string_view name;
};
// Empty for a URI that has not that form. The parts refer to the URI.
std::optional<CertificateName> ParseCertificateName(std::string_view uri);
// The name in the certificate that a connection was made with; the text lives as long as the
// connection. Empty without a certificate, and for one with several URIs.
std::string_view CertificateUri(const grpc::AuthContext& connection);

// spiffe://DOMAIN/svc/SERVICE.
std::string ServiceUri(std::string_view trust_domain, std::string_view service);

}  // namespace tollgate::rpc
