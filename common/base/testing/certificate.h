// For tests: a certificate authority and certificates that it signs.
#pragma once

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <string>

namespace tollgate::testing {

// A certificate with its key: self-signed for an authority, otherwise signed by one.
class TestCertificate {
 public:
  explicit TestCertificate(const std::string& name) : TestCertificate(name, "", nullptr) {}
  // alternative_name: for example "URI:spiffe://x", "DNS:localhost,IP:127.0.0.1".
  // valid_seconds: from now; negative for an expired certificate.
  TestCertificate(const std::string& name, const std::string& alternative_name,
                  const TestCertificate* authority, int64_t valid_seconds = 3600)
      : key_(EVP_EC_gen("P-256")), x509_(X509_new()) {
    static std::atomic<long> serial{0};
    X509_set_version(x509_, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x509_), ++serial);
    X509_gmtime_adj(X509_getm_notBefore(x509_), -3600);
    X509_gmtime_adj(X509_getm_notAfter(x509_), valid_seconds);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(x509_), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
    X509_set_pubkey(x509_, key_);
    const TestCertificate* issuer = authority != nullptr ? authority : this;
    X509_set_issuer_name(x509_, X509_get_subject_name(issuer->x509_));
    Extend(NID_basic_constraints, authority == nullptr ? "critical,CA:TRUE" : "CA:FALSE", issuer);
    if (!alternative_name.empty()) Extend(NID_subject_alt_name, alternative_name, issuer);
    X509_sign(x509_, issuer->key_, EVP_sha256());
  }
  ~TestCertificate() {
    X509_free(x509_);
    EVP_PKEY_free(key_);
  }
  TestCertificate(const TestCertificate&) = delete;
  TestCertificate& operator=(const TestCertificate&) = delete;

  void Write(const std::string& certificate_file, const std::string& key_file) const {
    WriteCertificate(certificate_file);
    FILE* file = std::fopen(key_file.c_str(), "w");
    PEM_write_PrivateKey(file, key_, nullptr, nullptr, 0, nullptr, nullptr);
    std::fclose(file);
  }
  void WriteCertificate(const std::string& certificate_file) const {
    FILE* file = std::fopen(certificate_file.c_str(), "w");
    PEM_write_X509(file, x509_);
    std::fclose(file);
  }
  long serial() const { return ASN1_INTEGER_get(X509_get0_serialNumber(x509_)); }

 private:
  void Extend(int nid, const std::string& value, const TestCertificate* issuer) {
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer->x509_, x509_, nullptr, nullptr, 0);
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
    ASSERT_NE(extension, nullptr);
    X509_add_ext(x509_, extension, -1);
    X509_EXTENSION_free(extension);
  }

  EVP_PKEY* key_;
  X509* x509_;
};

}  // namespace tollgate::testing
