#include "common/rpc/certificate_file.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <ctime>
#include <memory>

namespace tollgate::rpc {
namespace {

using FilePtr = std::unique_ptr<FILE, int (*)(FILE*)>;
using X509Ptr = std::unique_ptr<X509, void (*)(X509*)>;
using KeyPtr = std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)>;

X509Ptr ReadCertificate(const std::string& path) {
  const FilePtr file(std::fopen(path.c_str(), "re"), [](FILE* f) { return f ? fclose(f) : 0; });
  X509* read = file ? PEM_read_X509(file.get(), nullptr, nullptr, nullptr) : nullptr;
  ERR_clear_error();
  return {read, X509_free};
}

KeyPtr ReadKey(const std::string& path) {
  const FilePtr file(std::fopen(path.c_str(), "re"), [](FILE* f) { return f ? fclose(f) : 0; });
  // A key with a passphrase is an error: OpenSSL must not prompt on the terminal.
  const auto no_passphrase = [](char*, int, int, void*) { return -1; };
  EVP_PKEY* read =
      file ? PEM_read_PrivateKey(file.get(), nullptr, no_passphrase, nullptr) : nullptr;
  ERR_clear_error();
  return {read, EVP_PKEY_free};
}

}  // namespace

BasicResult<int64_t, std::string> CertificateExpiry(const std::string& certificate_file) {
  const X509Ptr certificate = ReadCertificate(certificate_file);
  std::tm utc{};
  if (!certificate || ASN1_TIME_to_tm(X509_get0_notAfter(certificate.get()), &utc) != 1) {
    return Fail{"there is no certificate in PEM form in " + certificate_file};
  }
  return static_cast<int64_t>(::timegm(&utc));
}

std::vector<std::string> CertificateUris(const std::string& certificate_file) {
  const X509Ptr certificate = ReadCertificate(certificate_file);
  std::vector<std::string> uris;
  if (!certificate) return uris;
  GENERAL_NAMES* names = static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate.get(), NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(names); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names, i);
    if (name->type != GEN_URI) continue;
    const ASN1_IA5STRING* uri = name->d.uniformResourceIdentifier;
    uris.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)),
                      static_cast<size_t>(ASN1_STRING_length(uri)));
  }
  GENERAL_NAMES_free(names);
  return uris;
}

BasicResult<void, std::string> CheckKeyPair(const std::string& certificate_file,
                                            const std::string& private_key_file) {
  const X509Ptr certificate = ReadCertificate(certificate_file);
  if (!certificate) return Fail{"there is no certificate in PEM form in " + certificate_file};
  const KeyPtr key = ReadKey(private_key_file);
  if (!key) {
    return Fail{"there is no private key in PEM form without a passphrase in " + private_key_file};
  }
  const bool match = X509_check_private_key(certificate.get(), key.get()) == 1;
  ERR_clear_error();
  if (!match) {
    return Fail{"the key in " + private_key_file + " does not belong to the certificate in " +
                certificate_file};
  }
  return {};
}

}  // namespace tollgate::rpc
