// Mutual TLS between Tollgate processes. Both ends verify the other's certificate against the
// configured authority and check its name: a client requires the service that it calls, a server
// checks which methods the caller may call (callers.h). Changed files apply to new connections
// within seconds.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "common/rpc/callers.h"

namespace grpc {
class ChannelCredentials;
class ServerCredentials;
}  // namespace grpc

namespace grpc::experimental {
class CertificateProviderInterface;
}

namespace tollgate::config::v1 {
class TlsConfig;
}

namespace tollgate::rpc {

bool TlsIsOn(const config::v1::TlsConfig& tls);
// Returns TlsConfig.trust_domain or its default.
std::string TrustDomain(const config::v1::TlsConfig& tls);

// The certificate files of a process, which are read again every second.
class TlsFiles {
 public:
  // The error names the missing or unreadable file, or a pair that does not match.
  static BasicResult<TlsFiles, std::string> Open(const config::v1::TlsConfig& tls);

  // Credentials for a client of one service, for example "billing": connections to other services
  // fail.
  std::shared_ptr<grpc::ChannelCredentials> ForClientOf(std::string_view service) const;
  // rules.trust_domain and rules.allowed_names are taken from the configuration.
  std::shared_ptr<grpc::ServerCredentials> ForServer(CallerRules rules) const;

 private:
  std::shared_ptr<grpc::experimental::CertificateProviderInterface> provider_;
  std::string trust_domain_;
  std::vector<std::string> allowed_callers_;
  std::shared_ptr<void> expiry_metric_;
};

}  // namespace tollgate::rpc
