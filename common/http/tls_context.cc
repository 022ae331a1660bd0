#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/stat.h>

#include <ctime>
#include <fstream>

#include "common/base/clock.h"
#include "common/http/tls.h"
#include "common/observability/log.h"
#include "common/observability/metrics.h"

namespace tollgate::http {
namespace {

// How often accepting looks whether the files have changed.
constexpr int64_t kLookEveryUs = 1'000'000;

// In the wire form of ALPN, the better one first: what the server chooses from. HTTP/2 is not
// spoken here, and the client asks for the first only.
constexpr unsigned char kProtocols[] =
    "\x08http/1.1"
    "\x08http/1.0";
constexpr unsigned kProtocolsSize = sizeof kProtocols - 1;
constexpr unsigned kFirstProtocolSize = 9;

std::string LastProblem() {
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
  // Of TLS 1.2 only what is both forward secret and authenticated. All of TLS 1.3 is.
  SSL_CTX_set_cipher_list(context.get(), "ECDHE+AESGCM:ECDHE+CHACHA20");
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_read_ahead(context.get(), 1);  // one call of the kernel per record, not two
  // No prompt on a terminal for a key with a passphrase: it is an error.
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

TlsServerContext::TlsServerContext(std::string certificate_file, std::string private_key_file)
    : certificate_file_(std::move(certificate_file)),
      private_key_file_(std::move(private_key_file)),
      context_(nullptr, SSL_CTX_free) {}

Result<std::shared_ptr<TlsServerContext>> TlsServerContext::Load(std::string certificate_file,
                                                                 std::string private_key_file) {
  if (certificate_file.empty() || private_key_file.empty()) {
    return Internal("TLS needs both certificate_file and private_key_file");
  }
  std::shared_ptr<TlsServerContext> made(
      new TlsServerContext(std::move(certificate_file), std::move(private_key_file)));
  made->stamp_ = made->LookAtFiles();
  made->looked_us_ = SystemClock::Get().MonotonicUs();
  if (auto loaded = made->LoadFiles(); !loaded) return Fail{loaded.error()};
  return made;
}

TlsServerContext::Stamp TlsServerContext::LookAtFiles() const {
  Stamp stamp;
  size_t i = 0;
  for (const std::string* file : {&certificate_file_, &private_key_file_}) {
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

Result<void> TlsServerContext::LoadFiles() {
  const auto problem = [](const char* setting, const std::string& file) {
    const std::string why = LastProblem();
    if (!std::ifstream(file)) return Internal(std::string(setting) + ": cannot read " + file);
    return Internal(std::string(setting) + ": " + file + ": " + why);
  };
  ERR_clear_error();
  TlsContextPointer context = NewContext(TLS_server_method());
  SSL_CTX* raw = context.get();
  if (SSL_CTX_use_certificate_chain_file(raw, certificate_file_.c_str()) != 1) {
    return problem("certificate_file", certificate_file_);
  }
  if (SSL_CTX_use_PrivateKey_file(raw, private_key_file_.c_str(), SSL_FILETYPE_PEM) != 1) {
    if (ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_VALUES_MISMATCH) {
      ERR_clear_error();
      return Internal("private_key_file: " + private_key_file_ +
                      " does not belong to the certificate in " + certificate_file_);
    }
    return problem("private_key_file", private_key_file_);
  }
  // A client may end with no more than a closed connection; what a request is, its framing says.
  SSL_CTX_set_options(raw, SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_OFF);  // tickets only: no memory per session
  SSL_CTX_set_alpn_select_cb(raw, ChooseProtocol, nullptr);
  context_ = std::move(context);
  const int64_t expiry_s = ExpiryOf(raw);
  metrics::Gauge("tollgate_tls_certificate_expiry_seconds",
                 "When the certificate in use expires, in seconds since 1970")
      .Set(static_cast<double>(expiry_s));
  log::Info("TLS certificate loaded", {{"file", certificate_file_}, {"expires_s", expiry_s}});
  return {};
}

void TlsServerContext::TakeRenewedFiles() {
  const int64_t now_us = SystemClock::Get().MonotonicUs();
  if (now_us - looked_us_ < kLookEveryUs) return;
  looked_us_ = now_us;
  const Stamp stamp = LookAtFiles();
  if (stamp == stamp_) return;
  stamp_ = stamp;
  // The certificate may be there before its key: what is in use stays until both fit, and each
  // change is tried.
  if (auto loaded = LoadFiles(); !loaded) {
    log::Warn("TLS certificate not renewed", {{"problem", loaded.error().internal}});
  }
}

std::unique_ptr<TlsSession> TlsServerContext::Accept(int socket) {
  TakeRenewedFiles();
  auto session = std::make_unique<TlsSession>(context_.get(), socket);
  session->BeServer();
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
    const std::string why = LastProblem();
    return Internal("cannot read authorities from " + authority_file + ": " + why);
  }
  ERR_clear_error();
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_alpn_protos(context.get(), kProtocols, kFirstProtocolSize);
  return std::shared_ptr<const TlsClientContext>(new TlsClientContext(std::move(context)));
}

std::unique_ptr<TlsSession> TlsClientContext::Connect(int socket, const std::string& host) const {
  auto session = std::make_unique<TlsSession>(context_.get(), socket);
  if (!session->BeClient(host)) return nullptr;
  return session;
}

}  // namespace tollgate::http
