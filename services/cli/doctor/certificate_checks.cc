#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <memory>
#include <set>

#include "common/base/clock.h"
#include "common/base/utc_text.h"
#include "common/rpc/certificate_file.h"
#include "common/rpc/peer.h"
#include "common/rpc/tls.h"
#include "services/cli/doctor/probe.h"

namespace tollgate::cli {
namespace {

constexpr int64_t kDay = 86'400;
// Threshold of the alert CertificateExpires.
constexpr int64_t kSoonDays = 14;

using CertificatePtr = std::unique_ptr<X509, void (*)(X509*)>;

// The certificate files of one endpoint, and what the certificate must contain.
struct Wanted {
  std::string subject;
  std::string certificate_file;
  std::string private_key_file;
  // Set for calls between processes; empty for an address that outside clients use.
  std::string authority_file;
  // Names (URIs) of which the certificate must have one; empty: any operator's.
  std::vector<std::string> uris;
  bool of_operator = false;
  std::string trust_domain;
  // Host name that outside clients use; empty: unknown.
  std::string host;
};

std::vector<CertificatePtr> ReadCertificates(const std::string& path) {
  std::vector<CertificatePtr> all;
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "re"),
                                                   [](FILE* f) { return f ? fclose(f) : 0; });
  while (file) {
    X509* read = PEM_read_X509(file.get(), nullptr, nullptr, nullptr);
    if (read == nullptr) break;
    all.emplace_back(read, X509_free);
  }
  ERR_clear_error();
  return all;
}

int64_t Seconds(const ASN1_TIME* time) {
  std::tm utc{};
  return ASN1_TIME_to_tm(time, &utc) == 1 ? static_cast<int64_t>(::timegm(&utc)) : 0;
}

std::string Date(int64_t seconds) { return UtcText(seconds * 1'000'000, UtcPrecision::kSeconds); }

// Why the first certificate is not signed by the authority, directly or through the other
// certificates; "" if it is.
std::string ChainError(const std::vector<CertificatePtr>& chain, const std::string& authority) {
  const std::vector<CertificatePtr> authorities = ReadCertificates(authority);
  if (authorities.empty()) return "there is no certificate in PEM form in " + authority;
  const std::unique_ptr<X509_STORE, void (*)(X509_STORE*)> store(X509_STORE_new(), X509_STORE_free);
  for (const CertificatePtr& one : authorities) X509_STORE_add_cert(store.get(), one.get());
  const std::unique_ptr<STACK_OF(X509), void (*)(STACK_OF(X509)*)> between(
      sk_X509_new_null(), [](STACK_OF(X509) * stack) { sk_X509_free(stack); });
  for (size_t i = 1; i < chain.size(); ++i) sk_X509_push(between.get(), chain[i].get());
  const std::unique_ptr<X509_STORE_CTX, void (*)(X509_STORE_CTX*)> context(X509_STORE_CTX_new(),
                                                                           X509_STORE_CTX_free);
  X509_STORE_CTX_init(context.get(), store.get(), chain.front().get(), between.get());
  // The validity period is checked separately.
  X509_VERIFY_PARAM_set_flags(X509_STORE_CTX_get0_param(context.get()), X509_V_FLAG_NO_CHECK_TIME);
  const bool good = X509_verify_cert(context.get()) == 1;
  const std::string error =
      good ? "" : X509_verify_cert_error_string(X509_STORE_CTX_get_error(context.get()));
  ERR_clear_error();
  return error;
}

class Look {
 public:
  Look(const Wanted& wanted, Findings& findings) : wanted_(wanted), findings_(findings) {}

  void Run() {
    const auto pair = rpc::CheckKeyPair(wanted_.certificate_file, wanted_.private_key_file);
    if (!pair.ok()) {
      Bad(pair.error(), "put both files of one renewal there; ./dev secrets makes them");
      return;
    }
    chain_ = ReadCertificates(wanted_.certificate_file);
    if (chain_.empty()) return Bad("has no certificate in PEM form", "./dev secrets makes one");
    Dates();
    Names();
    if (!wanted_.authority_file.empty()) {
      if (const std::string error = ChainError(chain_, wanted_.authority_file); !error.empty()) {
        Bad("is not signed by the authority in " + wanted_.authority_file + ": " + error,
            "use the authority that all processes have, or issue the certificate again with it");
      }
    }
    Mode();
    if (!wrong_) {
      findings_.push_back(Ok(wanted_.subject, "valid until " + Date(expiry_) + ", " +
                                                  std::to_string(days_) + " days" + names_text_));
    }
  }

 private:
  void Add(Finding finding) {
    wrong_ = true;
    findings_.push_back(std::move(finding));
  }
  void Bad(const std::string& finding, const std::string& advice) {
    Add(Failure(wanted_.subject, finding, advice));
  }

  void Dates() {
    const int64_t now = SystemClock::Get().WallUs() / 1'000'000;
    const int64_t begin = Seconds(X509_get0_notBefore(chain_.front().get()));
    expiry_ = Seconds(X509_get0_notAfter(chain_.front().get()));
    days_ = (expiry_ - now) / kDay;
    const std::string renew = wanted_.authority_file.empty()
                                  ? "renew it; the process takes new files without a restart"
                                  : "./dev secrets renews it (run it weekly); the "
                                    "process takes new files without a restart";
    if (expiry_ <= now) {
      Bad("expired on " + Date(expiry_), renew);
    } else if (begin > now) {
      Bad("is not valid before " + Date(begin), "set the clock of this machine, or wait");
    } else if (days_ < kSoonDays) {
      Add(Warning(wanted_.subject,
                  "expires in " + std::to_string(days_) + " days, on " + Date(expiry_), renew));
    }
  }

  void Names() {
    if (wanted_.authority_file.empty()) {
      if (wanted_.host.empty()) return;
      if (X509_check_host(chain_.front().get(), wanted_.host.c_str(), 0, 0, nullptr) != 1 &&
          X509_check_ip_asc(chain_.front().get(), wanted_.host.c_str(), 0) != 1) {
        Bad("is not for the host " + wanted_.host + ", which clients use",
            "get a certificate for that host, or correct base_url or public_url");
      } else {
        names_text_ = ", for " + wanted_.host;
      }
      return;
    }
    const std::vector<std::string> uris = rpc::CertificateUris(wanted_.certificate_file);
    std::string all;
    for (const std::string& uri : uris) all += (all.empty() ? "" : ", ") + uri;
    names_text_ = ", " + all;
    const std::string has = all.empty() ? "has no name (URI)" : "has the name " + all;
    if (wanted_.of_operator) {
      const auto name = uris.size() == 1 ? rpc::ParseCertificateName(uris[0]) : std::nullopt;
      if (!name || name->kind != rpc::PeerKind::kOperator || name->domain != wanted_.trust_domain) {
        Bad(has + ", not spiffe://" + wanted_.trust_domain + "/operator/NAME",
            "use the certificate of an operator: TOLLGATE_OPERATOR=NAME ./dev secrets makes one; "
            "--trust-domain names another domain");
      }
      return;
    }
    for (const std::string& uri : wanted_.uris) {
      if (std::ranges::find(uris, uri) == uris.end()) {
        Bad(has + ", not " + uri,
            "give the process the certificate of its own service; ./dev secrets makes one for "
            "each. Others refuse it as it is");
      }
    }
  }

  void Mode() {
    if (!OthersReach(wanted_.private_key_file)) return;
    Add(Warning(wanted_.subject, "other users can read or change " + wanted_.private_key_file,
                "chmod 600 " + wanted_.private_key_file));
  }

  const Wanted& wanted_;
  Findings& findings_;
  std::vector<CertificatePtr> chain_;
  std::string names_text_;
  int64_t expiry_ = 0;
  int64_t days_ = 0;
  bool wrong_ = false;
};

// Host of a URL: "https://api.example.com:8443/x" gives "api.example.com".
std::string HostOf(const std::string& url) {
  constexpr std::string_view kScheme = "https://";
  if (!url.starts_with(kScheme)) return "";
  std::string host = url.substr(kScheme.size());
  host = host.substr(0, host.find('/'));
  if (host.starts_with('[')) return host.substr(1, host.find(']') - 1);
  return host.substr(0, host.find(':'));
}

void AddWanted(Wanted wanted, Checks& checks) {
  const std::string subject = wanted.subject;
  checks.push_back({"certificate", subject, [wanted = std::move(wanted)] {
                      Findings findings;
                      Look(wanted, findings).Run();
                      return findings;
                    }});
}

void AddEdge(const ServiceConfig& service, const config::v1::EdgeTls& tls, const std::string& field,
             const std::string& url, Checks& checks) {
  if (tls.certificate_file().empty()) return;
  const std::string subject = service.path + " " + field;
  // With several certificates any of them may be for the host.
  AddWanted({.subject = subject,
             .certificate_file = tls.certificate_file(),
             .private_key_file = tls.private_key_file(),
             .host = tls.further_certificates().empty() ? HostOf(url) : ""},
            checks);
  for (const auto& further : tls.further_certificates()) {
    AddWanted({.subject = subject + ".further_certificates",
               .certificate_file = further.certificate_file(),
               .private_key_file = further.private_key_file()},
              checks);
  }
}

}  // namespace

void AddCertificateChecks(const Inventory& inventory, const DoctorOptions& options,
                          Checks& checks) {
  const auto wanted = [](const std::string& subject, const config::v1::TlsConfig& tls) {
    return Wanted{.subject = subject,
                  .certificate_file = tls.certificate_file(),
                  .private_key_file = tls.private_key_file(),
                  .authority_file = tls.authority_file(),
                  .trust_domain = rpc::TrustDomain(tls)};
  };
  if (rpc::TlsIsOn(options.tls)) {
    Wanted own = wanted("yours (--tls-cert)", options.tls);
    own.of_operator = true;
    AddWanted(std::move(own), checks);
  }
  for (const ServiceConfig& service : inventory.services) {
    const auto& config = service.config;
    if (UsesTls(service)) {
      Wanted own = wanted(service.path + " host.tls", config.host().tls());
      std::vector<std::string> names = {service.service};
      if (service.service == "allinone") names = {"auth", "billing"};
      for (const std::string& name : names) {
        own.uris.push_back(rpc::ServiceUri(own.trust_domain, name));
      }
      AddWanted(std::move(own), checks);
    }
    AddEdge(service, config.gateway().edge_tls(), "gateway.edge_tls", config.gateway().base_url(),
            checks);
    AddEdge(service, config.dashboard().edge_tls(), "dashboard.edge_tls",
            config.dashboard().public_url(), checks);
  }
}

}  // namespace tollgate::cli
