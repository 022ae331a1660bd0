// The certificates of the matrix, in the folder layout that ClusterOptions.certificates requires.
#pragma once

#include <filesystem>
#include <string>

#include "common/base/testing/certificate.h"
#include "tollgate/config/v1/config.pb.h"

namespace tollgate::test {

class Certificates {
 public:
  explicit Certificates(std::string folder) : folder_(std::move(folder)) {
    for (const char* service :
         {"auth", "billing", "catalog", "dashboard", "gateway", "inference-router", "ratelimit"}) {
      Issue(service, std::string("URI:spiffe://tollgate/svc/") + service);
    }
    Issue("operators/admin", "URI:spiffe://tollgate/operator/admin");
    authority_.WriteCertificate(folder_ + "/authority.pem");
    Issue("other-authority", "URI:spiffe://tollgate/svc/gateway", &other_authority_);
    Issue("other-domain", "URI:spiffe://elsewhere/svc/gateway");
    Issue("other-operator", "URI:spiffe://elsewhere/operator/admin");
    Issue("unknown-service", "URI:spiffe://tollgate/svc/mailer");
    Issue("without-name", "DNS:gateway");
    Issue("expired", "URI:spiffe://tollgate/svc/gateway", &authority_, -60);
  }

  const std::string& folder() const { return folder_; }
  // TLS settings of a caller with that certificate; it trusts the cluster's authority.
  config::v1::TlsConfig Of(const std::string& place) const {
    config::v1::TlsConfig tls;
    tls.set_authority_file(folder_ + "/authority.pem");
    tls.set_certificate_file(folder_ + "/" + place + "/certificate.pem");
    tls.set_private_key_file(folder_ + "/" + place + "/private_key.pem");
    return tls;
  }

 private:
  void Issue(const std::string& place, const std::string& alternative_name,
             const testing::TestCertificate* authority = nullptr, int64_t valid_seconds = 3600) {
    const std::string to = folder_ + "/" + place;
    std::filesystem::create_directories(to);
    testing::TestCertificate(place, alternative_name, authority ? authority : &authority_,
                             valid_seconds)
        .Write(to + "/certificate.pem", to + "/private_key.pem");
  }

  const std::string folder_;
  testing::TestCertificate authority_{"authority"};
  testing::TestCertificate other_authority_{"other authority"};
};

}  // namespace tollgate::test
