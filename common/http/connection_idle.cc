// Closing from outside: at a drain, to free memory, and to make room for another connection.
#include <sys/socket.h>

#include "common/http/connection.h"

namespace tollgate::http {

// A request that has arrived is still served, in the kernel or already read: cancelling does not
// affect a read that has completed, and a cancelled read ends in Close.
bool Connection::CloseIfIdle() {
  if (state_ != State::kHead || !in_.empty()) return false;
  char byte;
  if (deadline_ == Deadline::kHandshake ||
      ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0) {
    // Under TLS the bytes may be no request.
    if (core_->draining()) SetIdleDeadline();
    return false;
  }
  core_->SetIdle(*this, false);  // so that it is not found a second time
  boost::system::error_code ignored;
  if (reading_) {
    socket_.cancel(ignored);
  } else {
    Close();
  }
  return true;
}

// A head that is not complete, or a body without a credential, does not protect its connection: it
// may come from a client that sends a byte now and then.
bool Connection::Evict() {
  if (state_ == State::kLinger || state_ == State::kBody || deadline_ == Deadline::kHandshake ||
      deadline_ == Deadline::kHead) {
    Close();
    return true;
  }
  return CloseIfIdle();
}

void Connection::CloseNow() {
  if (state_ == State::kHandling) {
    MarkDisconnected();
  } else {
    Close();
  }
}

}  // namespace tollgate::http
