// Reads and closes TLS connections. Writing differs by one call (connection_write.cc).
#include <boost/asio/post.hpp>

#include "common/http/connection.h"
#include "common/observability/log.h"

namespace tollgate::http {

// Retries the read when the socket is ready.
struct Connection::ReadReady {
  std::shared_ptr<Connection> self;
  void operator()(boost::system::error_code error) {
    if (error) return self->OnRead(error, 0);
    self->reading_ = false;
    self->StartRead();
  }
};

void Connection::ReadTls(char* target, size_t room) {
  const TlsSession::Step step = tls_->Read(target, room);
  if (deadline_ == Deadline::kHandshake && tls_->established()) SetIdleDeadline();
  boost::system::error_code error;
  switch (step.status) {
    case TlsSession::Status::kWantRead:
      return socket_.async_wait(TcpSocket::wait_read, ReadReady{shared_from_this()});
    case TlsSession::Status::kWantWrite:
      return socket_.async_wait(TcpSocket::wait_write, ReadReady{shared_from_this()});
    case TlsSession::Status::kEnd:
      error = asio::error::eof;
      break;
    case TlsSession::Status::kBroken:
      error = asio::error::connection_reset;
      break;
    case TlsSession::Status::kOk:
      break;
  }
  // Posted: records that have already arrived must not nest calls or block other coroutines.
  asio::post(loop_.executor(), [self = shared_from_this(), error, count = step.bytes] {
    self->OnRead(error, count);
  });
}

void Connection::OnHandshakeFailed() {
  if (tls_->failure().empty()) return Close();  // the server itself closed it
  log::Debug("TLS handshake failed", {{"peer", peer_address_}, {"reason", tls_->failure()}});
  const bool sent_http = tls_->peer_sent_http();
  tls_ = nullptr;  // the response to a client without TLS must be plain text
  if (sent_http) {
    return Refuse(Error{ErrorId::kBadRequest, "this port expects TLS: use https instead of http"});
  }
  Linger();  // so that the client can receive the TLS alert
}

void Connection::ShutdownSend() {
  if (tls_ != nullptr) tls_->SendClose();
  boost::system::error_code ignored;
  socket_.shutdown(TcpSocket::shutdown_send, ignored);
}

}  // namespace tollgate::http
