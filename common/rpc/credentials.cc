#include "common/rpc/credentials.h"

#include <grpcpp/security/auth_context.h>
#include <grpcpp/security/auth_metadata_processor.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>

namespace tollgate::rpc {
namespace {

struct Pem {
  std::string certificate;
  std::string private_key;
  std::string authority;
};

bool IsPlain(const config::v1::TlsConfig& tls) {
  return tls.certificate_file().empty() && tls.private_key_file().empty() &&
         tls.authority_file().empty();
}

Result<std::string> ReadPem(const std::string& path, const char* what) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file || text.str().find("-----BEGIN ") == std::string::npos) {
    return Internal("tls." + std::string(what) + ": no PEM file at \"" + path + "\"");
  }
  return text.str();
}

Result<Pem> ReadAll(const config::v1::TlsConfig& tls) {
  auto certificate = ReadPem(tls.certificate_file(), "certificate_file");
  if (!certificate) return Fail{certificate.error()};
  auto key = ReadPem(tls.private_key_file(), "private_key_file");
  if (!key) return Fail{key.error()};
  auto authority = ReadPem(tls.authority_file(), "authority_file");
  if (!authority) return Fail{authority.error()};
  return Pem{*certificate, *key, *authority};
}

// Lets only listed peers in. Runs on each call, so it does no more than look two names up.
class AllowedCallers : public grpc::AuthMetadataProcessor {
 public:
  explicit AllowedCallers(std::set<std::string> names) : names_(std::move(names)) {}

  bool IsBlocking() const override { return false; }

  grpc::Status Process(const InputMetadata&, grpc::AuthContext* context, OutputMetadata*,
                       OutputMetadata*) override {
    for (const char* property : {"peer_uri", "peer_spiffe_id", "peer_dns", "x509_subject_alternative_name"}) {
      for (const grpc::string_ref& value : context->FindPropertyValues(property)) {
        if (names_.count(std::string(value.data(), value.size())) > 0) return grpc::Status::OK;
      }
    }
    return {grpc::StatusCode::PERMISSION_DENIED, "this caller is not on the list"};
  }

 private:
  const std::set<std::string> names_;
};

}  // namespace

Result<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(
    const config::v1::TlsConfig& tls) {
  if (IsPlain(tls)) return grpc::InsecureServerCredentials();
  auto pem = ReadAll(tls);
  if (!pem) return Fail{pem.error()};
  grpc::SslServerCredentialsOptions options(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = pem->authority;
  options.pem_key_cert_pairs.push_back({pem->private_key, pem->certificate});
  auto credentials = grpc::SslServerCredentials(options);
  if (tls.allowed_callers_size() > 0) {
    credentials->SetAuthMetadataProcessor(std::make_shared<AllowedCallers>(
        std::set<std::string>(tls.allowed_callers().begin(), tls.allowed_callers().end())));
  }
  return credentials;
}

Result<std::shared_ptr<grpc::ChannelCredentials>> MakeChannelCredentials(
    const config::v1::TlsConfig& tls) {
  if (IsPlain(tls)) return grpc::InsecureChannelCredentials();
  auto pem = ReadAll(tls);
  if (!pem) return Fail{pem.error()};
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = pem->authority;
  options.pem_private_key = pem->private_key;
  options.pem_cert_chain = pem->certificate;
  return grpc::SslCredentials(options);
}

}  // namespace tollgate::rpc
