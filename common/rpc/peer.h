// The identity of the other end of a call between processes.
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
  kLocalSocket,  // a unix socket; the operating system controls access
  kService,      // a certificate of a process
  kOperator,     // a certificate of an operator
  kPlainText,    // TCP without TLS, from anyone who can reach the address (host.insecure_plaintext)
  kUnknown,      // a certificate with another name; our servers refuse it
};

struct Peer {
  PeerKind kind = PeerKind::kUnknown;
  // Name of a service, for example "gateway", or of an operator; empty for other kinds.
  std::string name;
};

// A call over TLS reaches a service only if the name's domain is this deployment's (callers.h), so
// the returned name needs no further check.
Peer PeerOf(const grpc::ServerContextBase& context);

// Domain of a configuration without a trust domain (TlsConfig.trust_domain).
inline constexpr char kDefaultTrustDomain[] = "tollgate";

// The parts of a certificate's name. NAME consists of letters, digits, '.', '_' and '-'.
struct CertificateName {
  std::string_view domain;
  PeerKind kind = PeerKind::kUnknown;  // kService or kOperator
  std::string_view name;
};
// nullopt for a URI of another form. The parts refer to the URI.
std::optional<CertificateName> ParseCertificateName(std::string_view uri);
// The name in the peer's certificate; the text lives as long as the connection. Empty without a
// certificate, and for a certificate with several URIs.
std::string_view CertificateUri(const grpc::AuthContext& connection);

// spiffe://DOMAIN/svc/SERVICE.
std::string ServiceUri(std::string_view trust_domain, std::string_view service);

}  // namespace tollgate::rpc
