#include "common/rpc/tls.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/security/auth_metadata_processor.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <fstream>
#include <set>

#include "tollgate/config/v1/config.pb.h"

namespace tollgate::rpc {
namespace {

// How often the files are checked: renewed certificates are used without a restart.
constexpr unsigned kReloadSeconds = 60;

using grpc::experimental::FileWatcherCertificateProvider;

BasicResult<std::shared_ptr<FileWatcherCertificateProvider>, std::string> Provider(
    const config::v1::TlsConfig& tls) {
  for (const std::string& path :
       {tls.certificate_file(), tls.private_key_file(), tls.authority_file()}) {
    if (path.empty()) {
      return Fail{
          std::string("tls needs all of certificate_file, private_key_file and authority_file")};
    }
    if (!std::ifstream(path)) return Fail{"cannot read " + path};
  }
  return std::make_shared<FileWatcherCertificateProvider>(
      tls.private_key_file(), tls.certificate_file(), tls.authority_file(), kReloadSeconds);
}

// Refuses calls of peers whose certificate has none of the allowed names.
class CallerCheck : public grpc::AuthMetadataProcessor {
 public:
  explicit CallerCheck(std::set<std::string> allowed) : allowed_(std::move(allowed)) {}
  bool IsBlocking() const override { return false; }
  grpc::Status Process(const InputMetadata&, grpc::AuthContext* context, OutputMetadata*,
                       OutputMetadata*) override {
    for (const char* property : {"peer_spiffe_id", "x509_subject_alternative_name"}) {
      for (const grpc::string_ref& name : context->FindPropertyValues(property)) {
        if (allowed_.contains(std::string(name.data(), name.size()))) return grpc::Status::OK;
      }
    }
    return {grpc::StatusCode::PERMISSION_DENIED, "the caller is not in allowed_callers"};
  }

 private:
  const std::set<std::string> allowed_;
};

}  // namespace

bool TlsIsOn(const config::v1::TlsConfig& tls) {
  return !tls.certificate_file().empty() || !tls.private_key_file().empty() ||
         !tls.authority_file().empty();
}

BasicResult<std::shared_ptr<grpc::ChannelCredentials>, std::string> MakeTlsChannelCredentials(
    const config::v1::TlsConfig& tls) {
  auto provider = Provider(tls);
  if (!provider.ok()) return Fail{provider.error()};
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(*provider);
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  // The certificates name services, not hosts. The authority signs only certificates of this
  // deployment, so its signature is sufficient to trust a server.
  options.set_verify_server_certs(true);
  options.set_check_call_host(false);
  options.set_certificate_verifier(std::make_shared<grpc::experimental::NoOpCertificateVerifier>());
  return grpc::experimental::TlsCredentials(options);
}

BasicResult<std::shared_ptr<grpc::ServerCredentials>, std::string> MakeTlsServerCredentials(
    const config::v1::TlsConfig& tls) {
  auto provider = Provider(tls);
  if (!provider.ok()) return Fail{provider.error()};
  grpc::experimental::TlsServerCredentialsOptions options(*provider);
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  auto credentials = grpc::experimental::TlsServerCredentials(options);
  if (tls.allowed_callers_size() > 0) {
    credentials->SetAuthMetadataProcessor(std::make_shared<CallerCheck>(
        std::set<std::string>(tls.allowed_callers().begin(), tls.allowed_callers().end())));
  }
  return credentials;
}

}  // namespace tollgate::rpc
