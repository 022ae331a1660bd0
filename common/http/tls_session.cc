#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "common/http/tls.h"

namespace tollgate::http {
namespace {

// Maximum payload of a record.
constexpr size_t kRecordBytes = 16 * 1024;

bool IsAddress(const std::string& host) {
  unsigned char bytes[16];
  return ::inet_pton(AF_INET, host.c_str(), bytes) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), bytes) == 1;
}

}  // namespace

// Connects OpenSSL to the socket. OpenSSL's own BIO would raise SIGPIPE.
struct SocketBio {
  static int Write(BIO* bio, const char* data, int size) {
    BIO_clear_retry_flags(bio);
    const auto* session = static_cast<TlsSession*>(BIO_get_data(bio));
    ssize_t sent;
    do {
      sent = ::send(session->socket_, data, static_cast<size_t>(size), MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (sent < 0 && errno == EINTR);
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) BIO_set_retry_write(bio);
    return static_cast<int>(sent);
  }
  static int Read(BIO* bio, char* data, int size) {
    BIO_clear_retry_flags(bio);
    auto* session = static_cast<TlsSession*>(BIO_get_data(bio));
    ssize_t got;
    do {
      got = ::recv(session->socket_, data, static_cast<size_t>(size), MSG_DONTWAIT);
    } while (got < 0 && errno == EINTR);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) BIO_set_retry_read(bio);
    if (got == 0) session->socket_at_end_ = true;
    return static_cast<int>(got);
  }
  static long Control(BIO* bio, int command, long, void*) {
    switch (command) {
      case BIO_CTRL_FLUSH:
        return 1;
      case BIO_CTRL_EOF:
        return static_cast<TlsSession*>(BIO_get_data(bio))->socket_at_end_ ? 1 : 0;
      default:
        return 0;
    }
  }
  static BIO_METHOD* Method() {
    static BIO_METHOD* const method = [] {
      BIO_METHOD* made =
          BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "tollgate socket");
      BIO_meth_set_write(made, Write);
      BIO_meth_set_read(made, Read);
      BIO_meth_set_ctrl(made, Control);
      return made;
    }();
    return method;
  }
};

TlsSession::TlsSession(ssl_ctx_st* context, int socket)
    : ssl_(SSL_new(context), SSL_free), socket_(socket) {
  BIO* bio = BIO_new(SocketBio::Method());
  if (ssl_ == nullptr || bio == nullptr) std::abort();  // out of memory
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_.get(), bio, bio);
}

TlsSession::~TlsSession() = default;

void TlsSession::SetServerSide() { SSL_set_accept_state(ssl_.get()); }

bool TlsSession::SetClientSide(const std::string& host) {
  SSL_set_connect_state(ssl_.get());
  if (IsAddress(host)) {
    return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl_.get()), host.c_str()) == 1;
  }
  SSL_set_hostflags(ssl_.get(), X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  return SSL_set_tlsext_host_name(ssl_.get(), host.c_str()) == 1 &&
         SSL_set1_host(ssl_.get(), host.c_str()) == 1;
}

TlsSession::Status TlsSession::Outcome(int result) {
  const int error = SSL_get_error(ssl_.get(), result);
  if (!established_ && SSL_is_init_finished(ssl_.get())) established_ = true;
  switch (error) {
    case SSL_ERROR_NONE:
      return Status::kOk;
    case SSL_ERROR_WANT_READ:
      return Status::kWantRead;
    case SSL_ERROR_WANT_WRITE:
      return Status::kWantWrite;
    case SSL_ERROR_ZERO_RETURN:
      return Status::kEnd;
    default:
      break;
  }
  const unsigned long code = ERR_peek_error();
  const long verified = SSL_get_verify_result(ssl_.get());
  if (ERR_GET_REASON(code) == SSL_R_CERTIFICATE_VERIFY_FAILED && verified != X509_V_OK) {
    failure_ = std::string("certificate: ") + X509_verify_cert_error_string(verified);
  } else if (code != 0) {
    const char* reason = ERR_reason_error_string(code);
    failure_ = reason != nullptr ? reason : "unknown error";
  } else {
    failure_ = socket_at_end_ ? "the peer closed the connection" : std::strerror(errno);
  }
  peer_sent_http_ = !established_ && ERR_GET_REASON(code) == SSL_R_HTTP_REQUEST;
  ERR_clear_error();
  return Status::kBroken;
}

TlsSession::Status TlsSession::Handshake() {
  ERR_clear_error();
  return Outcome(SSL_do_handshake(ssl_.get()));
}

TlsSession::Step TlsSession::Read(char* to, size_t room) {
  ERR_clear_error();
  size_t count = 0;
  const int result = SSL_read_ex(ssl_.get(), to, room, &count);
  const Status status = Outcome(result);
  return {status, result == 1 ? count : 0};
}

TlsSession::Step TlsSession::Write(std::initializer_list<std::string_view> parts) {
  Step step;
  char record[kRecordBytes];
  auto part = parts.begin();
  size_t at = 0;  // position in *part
  while (true) {
    while (part != parts.end() && at == part->size()) {
      ++part;
      at = 0;
    }
    if (part == parts.end()) return step;
    std::string_view piece = part->substr(at, kRecordBytes);
    if (piece.size() < kRecordBytes && part + 1 != parts.end()) {
      // Small parts are copied together, so that an event and its chunk framing are one record.
      size_t filled = 0;
      auto from = part;
      for (size_t skip = at; from != parts.end() && filled < kRecordBytes; ++from, skip = 0) {
        filled += from->copy(record + filled, kRecordBytes - filled, skip);
      }
      piece = {record, filled};
    }
    ERR_clear_error();
    size_t count = 0;
    const int result = SSL_write_ex(ssl_.get(), piece.data(), piece.size(), &count);
    step.status = Outcome(result);
    if (result != 1) return step;
    step.bytes += count;
    while (count > 0) {
      const size_t taken = std::min(count, part->size() - at);
      count -= taken;
      at += taken;
      if (at == part->size() && count > 0) {
        ++part;
        at = 0;
      }
    }
  }
}

void TlsSession::SendClose() {
  if (!established_ || (SSL_get_shutdown(ssl_.get()) & SSL_SENT_SHUTDOWN) != 0) return;
  ERR_clear_error();
  SSL_shutdown(ssl_.get());
  ERR_clear_error();
}

bool TlsSession::HasNothingToRead() {
  char byte;
  size_t count = 0;
  ERR_clear_error();
  const Status status = Outcome(SSL_peek_ex(ssl_.get(), &byte, 1, &count));
  return status == Status::kWantRead;
}

}  // namespace tollgate::http
