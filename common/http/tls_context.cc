#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <fstream>

#include "common/base/time_units.h"
#include "common/base/try.h"
#include "common/http/tls.h"
#include "common/observability/log.h"
#include "common/observability/metrics.h"

namespace tollgate::http {
namespace {

// How often Accept checks whether the files have changed.
constexpr int64_t kCheckIntervalUs = 1'000'000;
// Who steals the key for tickets can read the resumed TLS 1.2 connections of one day.
constexpr int64_t kTicketKeyLifetimeUs = kDayUs;

// Supported protocols in ALPN's wire format, in order of preference. The client offers only the
// first one.
constexpr unsigned char kProtocols[] =
    "\x08http/1.1"
    "\x08http/1.0";
constexpr unsigned kProtocolsSize = sizeof kProtocols - 1;
constexpr unsigned kFirstProtocolSize = 9;

std::string LastError() {
  const unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  const char* reason = ERR_reason_error_string(code);
  return reason != nullptr ? reason : "unknown error";
}

int ChooseProtocol(SSL*, const unsigned char** out, unsigned char* out_size,
                   const unsigned char* offered, unsigned offered_size, void*) {
  unsigned char* chosen = nullptr;
  if (SSL_select_next_proto(&chosen, out_size, kProtocols, kProtocolsSize, offered, offered_size) !=
      OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  }
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

TlsContextPointer NewContext(const SSL_METHOD* method) {
  TlsContextPointer context(SSL_CTX_new(method), SSL_CTX_free);
  if (context == nullptr) std::abort();  // out of memory
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  // TLS 1.2 is limited to forward-secret AEAD ciphers; all ciphers of TLS 1.3 are such.
  SSL_CTX_set_cipher_list(context.get(), "ECDHE+AESGCM:ECDHE+CHACHA20");
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_read_ahead(context.get(), 1);  // one system call per record, not two
  // A key with a passphrase is an error: OpenSSL must not prompt on the terminal.
  SSL_CTX_set_default_passwd_cb(context.get(), [](char*, int, int, void*) { return -1; });
  return context;
}

int64_t ExpiryOf(SSL_CTX* context) {
  std::tm utc{};
  const X509* certificate = SSL_CTX_get0_certificate(context);
  if (certificate == nullptr || ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &utc) != 1) {
    return 0;
  }
  return ::timegm(&utc);
}

}  // namespace

// Selects the certificate for the host that the client names (SNI).
struct ServerName {
  static int Select(SSL* ssl, int*, void* context) {
    const char* name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    if (name == nullptr) return SSL_TLSEXT_ERR_OK;
    auto* server = static_cast<TlsServerContext*>(context);
    std::lock_guard lock(server->mutex_);
    for (const auto& certificate : server->certificates_) {
      X509* own = SSL_CTX_get0_certificate(certificate.context.get());
      if (X509_check_host(own, name, 0, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS, nullptr) != 1)
        continue;
      SSL_set_SSL_CTX(ssl, certificate.context.get());
      return SSL_TLSEXT_ERR_OK;
    }
    return SSL_TLSEXT_ERR_OK;
  }
};

Result<std::shared_ptr<TlsServerContext>> TlsServerContext::Load(
    std::vector<CertificateFiles> files, const Clock& clock) {
  std::shared_ptr<TlsServerContext> made(new TlsServerContext(clock));
  made->checked_us_ = clock.MonotonicUs();
  for (CertificateFiles& pair : files) {
    if (pair.certificate_file.empty() || pair.private_key_file.empty()) {
      return Internal("TLS needs both certificate_file and private_key_file");
    }
    Certificate certificate{.files = std::move(pair),
                            .loaded_us = made->checked_us_,
                            .context = {nullptr, SSL_CTX_free}};
    certificate.stamp = StatFiles(certificate.files);
    TRY(made->LoadFiles(certificate));
    made->certificates_.push_back(std::move(certificate));
  }
  if (made->certificates_.empty()) return Internal("TLS needs a certificate");
  made->ReportExpiry();
  return made;
}

TlsServerContext::Stamp TlsServerContext::StatFiles(const CertificateFiles& files) {
  Stamp stamp;
  size_t i = 0;
  for (const std::string* file : {&files.certificate_file, &files.private_key_file}) {
    struct stat found{};
    if (::stat(file->c_str(), &found) == 0) {
      stamp.modified_ns[i] = found.st_mtim.tv_sec * int64_t{1'000'000'000} + found.st_mtim.tv_nsec;
      stamp.inode[i] = found.st_ino;
      stamp.size[i] = found.st_size;
    }
    ++i;
  }
  return stamp;
}

Result<void> TlsServerContext::LoadFiles(Certificate& certificate) {
  const auto& [certificate_file, private_key_file] = certificate.files;
  const auto problem = [](const char* setting, const std::string& file) {
    const std::string why = LastError();
    if (!std::ifstream(file)) return Internal(std::string(setting) + ": cannot read " + file);
    return Internal(std::string(setting) + ": " + file + ": " + why);
  };
  ERR_clear_error();
  TlsContextPointer context = NewContext(TLS_server_method());
  SSL_CTX* raw = context.get();
  if (SSL_CTX_use_certificate_chain_file(raw, certificate_file.c_str()) != 1) {
    return problem("certificate_file", certificate_file);
  }
  if (SSL_CTX_use_PrivateKey_file(raw, private_key_file.c_str(), SSL_FILETYPE_PEM) != 1) {
    if (ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_VALUES_MISMATCH) {
      ERR_clear_error();
      return Internal("private_key_file: " + private_key_file +
                      " does not belong to the certificate in " + certificate_file);
    }
    return problem("private_key_file", private_key_file);
  }
  // A client may close without close_notify: the framing tells whether a request is complete.
  SSL_CTX_set_options(raw, SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_OFF);  // only tickets: no memory per session
  SSL_CTX_set_alpn_select_cb(raw, ChooseProtocol, nullptr);
  SSL_CTX_set_tlsext_servername_callback(raw, ServerName::Select);
  SSL_CTX_set_tlsext_servername_arg(raw, this);
  certificate.context = std::move(context);
  certificate.expiry_s = ExpiryOf(raw);
  log::Info("TLS certificate loaded",
            {{"file", certificate_file}, {"expires_s", certificate.expiry_s}});
  return {};
}

void TlsServerContext::ReportExpiry() const {
  int64_t first_s = certificates_.front().expiry_s;
  for (const Certificate& certificate : certificates_) {
    first_s = std::min(first_s, certificate.expiry_s);
  }
  metrics::Gauge("tollgate_tls_certificate_expiry_seconds",
                 "When the first certificate in use expires, in seconds since 1970")
      .Set(static_cast<double>(first_s));
}

void TlsServerContext::Reload() {
  const int64_t now_us = clock_.MonotonicUs();
  if (now_us - checked_us_ < kCheckIntervalUs) return;
  checked_us_ = now_us;
  for (Certificate& certificate : certificates_) {
    const Stamp stamp = StatFiles(certificate.files);
    if (stamp == certificate.stamp && now_us - certificate.loaded_us < kTicketKeyLifetimeUs) {
      continue;
    }
    certificate.stamp = stamp;
    certificate.loaded_us = now_us;
    // A certificate may be replaced before its key. The old pair stays in use until the new one
    // matches.
    if (auto loaded = LoadFiles(certificate); !loaded) {
      log::Warn("cannot load the TLS certificate again; the previous one stays in use",
                {{"error", loaded.error().internal}});
    }
    ReportExpiry();
  }
}

std::unique_ptr<TlsSession> TlsServerContext::Accept(int socket) {
  std::lock_guard lock(mutex_);
  Reload();
  auto session = std::make_unique<TlsSession>(certificates_.front().context.get(), socket);
  session->SetServerSide();
  return session;
}

Result<std::shared_ptr<const TlsClientContext>> TlsClientContext::Make(
    const std::string& authority_file) {
  ERR_clear_error();
  TlsContextPointer context = NewContext(TLS_client_method());
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_default_verify_paths(context.get());
  if (!authority_file.empty() &&
      SSL_CTX_load_verify_file(context.get(), authority_file.c_str()) != 1) {
    const std::string why = LastError();
    return Internal("cannot read authorities from " + authority_file + ": " + why);
  }
  ERR_clear_error();
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_alpn_protos(context.get(), kProtocols, kFirstProtocolSize);
  return std::shared_ptr<const TlsClientContext>(new TlsClientContext(std::move(context)));
}

std::unique_ptr<TlsSession> TlsClientContext::Connect(int socket, const std::string& host) const {
  auto session = std::make_unique<TlsSession>(context_.get(), socket);
  if (!session->SetClientSide(host)) return nullptr;
  return session;
}

}  // namespace tollgate::http
