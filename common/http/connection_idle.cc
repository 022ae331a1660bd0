// Closes connections from outside: for a drain, to free memory, and to make room for another
// connection.
#include <sys/socket.h>

#include <utility>

#include "common/http/connection.h"

namespace tollgate::http {

// A request that has arrived is still served, whether it is in the kernel or already read:
// cancelling does not affect a read that has completed, and a cancelled read ends in Close.
bool Connection::CloseIfIdle() {
  if (state_ != State::kHead || !in_.empty()) return false;
  char byte;
  if (deadline_ == Deadline::kHandshake ||
      ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0) {
    // Under TLS the bytes may be something else than a request.
    if (core_->draining()) SetIdleDeadline();
    return false;
  }
  core_->SetIdle(*this, false);  // so that it is not selected again
  boost::system::error_code ignored;
  if (reading_) {
    socket_.cancel(ignored);
  } else {
    Close();
  }
  return true;
}

// An incomplete head, or a body without a credential, does not protect its connection: the client
// may be sending a byte now and then.
bool Connection::Evict() {
  if (state_ == State::kLinger || state_ == State::kBody || deadline_ == Deadline::kHandshake ||
      deadline_ == Deadline::kHead) {
    Close();
    return true;
  }
  return CloseIfIdle();
}

void Connection::OnDrainOver(std::function<void()> callback) {
  if (drain_over() && callback) return callback();
  on_drain_over_ = std::move(callback);
}

void Connection::EndRequest() {
  if (auto callback = std::exchange(on_drain_over_, nullptr)) callback();
}

void Connection::CloseNow() {
  if (state_ == State::kHandling) {
    MarkDisconnected();
  } else {
    Close();
  }
}

}  // namespace tollgate::http
