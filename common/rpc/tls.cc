#include "common/rpc/tls.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <utility>

#include "common/base/clock.h"
#include "common/base/try.h"
#include "common/observability/log.h"
#include "common/observability/metrics.h"
#include "common/rpc/certificate_file.h"
#include "common/rpc/peer.h"
#include "tollgate/config/v1/config.pb.h"

namespace tollgate::rpc {
namespace {

// How often the files are read. If only one of certificate and key has been replaced, new
// connections fail until the next reading.
constexpr unsigned kReloadSeconds = 1;

// gRPC 1.51 has no setting for the minimum version of TLS. Its cipher list applies to TLS 1.2. The
// only suite listed here needs a pre-shared key, which neither end has, so only TLS 1.3 remains,
// whose suites gRPC does not set. gRPC reads the list at its first use of TLS, so it is set before
// main. An operator's own value takes precedence.
[[maybe_unused]] const int only_tls_1_3 =
    ::setenv("GRPC_SSL_CIPHER_SUITES", "PSK-AES256-GCM-SHA384", /*overwrite=*/0);

using grpc::experimental::ExternalCertificateVerifier;
using grpc::experimental::TlsCustomVerificationCheckRequest;

// Runs after the server's certificate chain was verified.
class ServerNameCheck : public ExternalCertificateVerifier {
 public:
  explicit ServerNameCheck(std::string uri) : uri_(std::move(uri)) {}

  bool Verify(TlsCustomVerificationCheckRequest* request, std::function<void(grpc::Status)>,
              grpc::Status* status) override {
    // A process that runs several services has a name for each of them.
    const auto names = request->uri_names();
    const bool found = std::any_of(names.begin(), names.end(), [this](const grpc::string_ref& at) {
      return std::string_view(at.data(), at.size()) == uri_;
    });
    *status = found ? grpc::Status::OK
                    : grpc::Status(grpc::StatusCode::UNAUTHENTICATED,
                                   "the server's certificate is not that of " + uri_);
    return true;  // completed synchronously
  }
  void Cancel(TlsCustomVerificationCheckRequest*) override {}

 private:
  const std::string uri_;
};

// Keeps a gauge current, and warns if the certificate has already expired.
std::shared_ptr<void> ReportExpiry(const std::string& certificate_file) {
  const auto update = [certificate_file] {
    const auto expiry = CertificateExpiry(certificate_file);
    if (!expiry.ok()) return int64_t{0};
    metrics::Gauge("tollgate_rpc_certificate_expiry_seconds",
                   "When the certificate for calls between processes expires, in seconds since "
                   "1970")
        .Set(static_cast<double>(*expiry));
    return *expiry;
  };
  const int64_t expiry_s = update();
  if (expiry_s <= SystemClock::Get().WallUs() / 1'000'000) {
    log::Error(
        "the certificate for calls between processes has expired: renew it; no restart is "
        "needed",
        {{"file", certificate_file}, {"expired_s", expiry_s}});
  }
  return metrics::BeforeRender([update] { update(); });
}

// Other processes refuse such a certificate, and otherwise only their logs would show it.
void WarnIfNameless(const std::string& certificate_file, const std::string& domain) {
  for (const std::string& uri : CertificateUris(certificate_file)) {
    const auto name = ParseCertificateName(uri);
    if (name && name->domain == domain) return;
  }
  log::Warn(
      "the certificate for calls between processes has no name of this deployment: other "
      "processes will refuse it",
      {{"file", certificate_file}, {"name_such_as", ServiceUri(domain, "gateway")}});
}

}  // namespace

bool TlsIsOn(const config::v1::TlsConfig& tls) {
  return !tls.certificate_file().empty() || !tls.private_key_file().empty() ||
         !tls.authority_file().empty();
}

std::string TrustDomain(const config::v1::TlsConfig& tls) {
  return tls.trust_domain().empty() ? kDefaultTrustDomain : tls.trust_domain();
}

BasicResult<TlsFiles, std::string> TlsFiles::Open(const config::v1::TlsConfig& tls) {
  for (const std::string& path :
       {tls.certificate_file(), tls.private_key_file(), tls.authority_file()}) {
    if (path.empty()) {
      return Fail{
          std::string("tls needs all of certificate_file, private_key_file and authority_file")};
    }
    if (!std::ifstream(path)) return Fail{"cannot read " + path};
  }
  TRY(CheckKeyPair(tls.certificate_file(), tls.private_key_file()));
  const std::string domain = TrustDomain(tls);
  if (!ParseCertificateName(ServiceUri(domain, "auth"))) {
    return Fail{"trust_domain \"" + domain +
                "\" has other characters than letters, digits, '.', '_' and '-'"};
  }
  WarnIfNameless(tls.certificate_file(), domain);
  TlsFiles files;
  files.expiry_metric_ = ReportExpiry(tls.certificate_file());
  files.trust_domain_ = domain;
  files.allowed_callers_ = {tls.allowed_callers().begin(), tls.allowed_callers().end()};
  files.provider_ = std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
      tls.private_key_file(), tls.certificate_file(), tls.authority_file(), kReloadSeconds);
  return files;
}

std::shared_ptr<grpc::ChannelCredentials> TlsFiles::ForClientOf(std::string_view service) const {
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(provider_);
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_verify_server_certs(true);
  // Certificates name services, not hosts: a service may be reached at any address.
  options.set_check_call_host(false);
  options.set_certificate_verifier(
      ExternalCertificateVerifier::Create<ServerNameCheck>(ServiceUri(trust_domain_, service)));
  return grpc::experimental::TlsCredentials(options);
}

std::shared_ptr<grpc::ServerCredentials> TlsFiles::ForServer(CallerRules rules) const {
  grpc::experimental::TlsServerCredentialsOptions options(provider_);
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  auto credentials = grpc::experimental::TlsServerCredentials(options);
  rules.trust_domain = trust_domain_;
  rules.allowed_names = {allowed_callers_.begin(), allowed_callers_.end()};
  credentials->SetAuthMetadataProcessor(MakeCallerCheck(std::move(rules)));
  return credentials;
}

}  // namespace tollgate::rpc
