#include "common/http/client_connection.h"

#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>

#include "common/base/clock.h"
#include "common/http/keep_alive.h"

namespace tollgate::http {
namespace {

using asio::ip::tcp;

constexpr size_t kReadBytes = 8 * 1024;

}  // namespace

ClientConnection::ClientConnection(Loop& loop, Origin origin)
    : loop_(loop), origin_(std::move(origin)), socket_(loop.context()) {}

ClientConnection::~ClientConnection() {
  if (timer_ != 0) loop_.CancelTimer(timer_);
}

void ClientConnection::SetDeadline(int64_t timeout_ms) {
  deadline_us_ = MonotonicNowUs() + timeout_ms * 1000;
  if (timer_ != 0 && timer_us_ <= deadline_us_) return;
  if (timer_ != 0) loop_.CancelTimer(timer_);
  ArmTimer();
}

void ClientConnection::ArmTimer() {
  timer_us_ = deadline_us_;
  int64_t delay_ms = (std::max<int64_t>(deadline_us_ - MonotonicNowUs(), 0) + 999) / 1000;
  timer_ = loop_.RunAfter(delay_ms, [this] {
    timer_ = 0;
    if (deadline_us_ == 0) return;
    if (MonotonicNowUs() < deadline_us_) return ArmTimer();
    timed_out_ = true;
    Reset();
  });
}

error_code ClientConnection::Outcome(error_code error) {
  ClearDeadline();
  if (timed_out_) return asio::error::timed_out;
  if (aborted_) return asio::error::operation_aborted;
  return error;
}

void ClientConnection::Reset() {
  aborted_ = true;
  if (look_up_ != nullptr) look_up_->Cancel();
  if (!socket_.is_open()) return;
  open_ = false;
  error_code ignored;
  socket_.set_option(asio::socket_base::linger(true, 0), ignored);
  socket_.close(ignored);
}

Task<error_code> ClientConnection::Connect(const ClientOptions& options) {
  auto self = shared_from_this();
  SetDeadline(options.connect_timeout_ms);
  error_code error = co_await ConnectSocket(options);
  if (!error && !aborted_ && origin_.tls) error = co_await StartTls(options);
  error = Outcome(error);
  open_ = !error;
  co_return error;
}

Task<HostResolver::Answer> ClientConnection::Resolve(const ClientOptions& options) {
  HostResolver::Answer answer;
  const std::string& host = origin_.address.empty() ? origin_.host : origin_.address;
  const auto literal = asio::ip::make_address(host, answer.error);
  if (!answer.error) {
    answer.addresses.push_back(literal);
    co_return answer;
  }
  HostLookUp look_up(loop_, *(options.resolver ? options.resolver : HostResolver::Shared()));
  // Resets the member even if the loop ends and destroys this coroutine.
  struct Scope {
    HostLookUp** member;
    ~Scope() { *member = nullptr; }
  } scope{&look_up_};
  look_up_ = &look_up;
  co_return co_await look_up.Run(host);
}

Task<error_code> ClientConnection::ConnectSocket(const ClientOptions& options) {
  const HostResolver::Answer found = co_await Resolve(options);
  if (found.error) co_return found.error;
  if (aborted_) co_return asio::error::operation_aborted;
  std::vector<tcp::endpoint> endpoints;
  for (const asio::ip::address& address : found.addresses) {
    endpoints.emplace_back(address, origin_.port);
  }
  const auto [error, connected] =
      co_await asio::async_connect(socket_, endpoints, asio::as_tuple(kUseTask));
  error_code ignored;
  if (!error) {
    socket_.set_option(tcp::no_delay(true), ignored);
    NoticeLostPeers(socket_.native_handle());
  }
  co_return error;
}

Task<error_code> ClientConnection::StartTls(const ClientOptions& options) {
  if (options.tls != nullptr) tls_ = options.tls->Connect(socket_.native_handle(), origin_.host);
  if (tls_ == nullptr) {
    tls_failure_ = "no trusted authorities are configured, or the host is invalid";
    co_return asio::error::operation_not_supported;
  }
  while (true) {
    const TlsSession::Status status = tls_->Handshake();
    if (status == TlsSession::Status::kOk) co_return error_code();
    if (error_code error = co_await WaitFor(status)) {
      tls_failure_ = tls_->failure();
      co_return error;
    }
  }
}

Task<error_code> ClientConnection::WaitFor(TlsSession::Status wanted) {
  if (wanted == TlsSession::Status::kEnd) co_return asio::error::eof;
  if (wanted == TlsSession::Status::kBroken) co_return asio::error::connection_reset;
  auto [error] = co_await socket_.async_wait(
      wanted == TlsSession::Status::kWantRead ? TcpSocket::wait_read : TcpSocket::wait_write,
      asio::as_tuple(kUseTask));
  // The timer or Abort may close the socket after the wait has succeeded.
  if (!error && !socket_.is_open()) co_return asio::error::operation_aborted;
  co_return error;
}

ssize_t ClientConnection::SendNow(std::string_view head, std::string_view body) {
  if (tls_ != nullptr) {
    const TlsSession::Step step = tls_->Write({head, body});
    if (step.status != TlsSession::Status::kBroken) return static_cast<ssize_t>(step.bytes);
    errno = EPIPE;
    return -1;
  }
  iovec vectors[2] = {{const_cast<char*>(head.data()), head.size()},
                      {const_cast<char*>(body.data()), body.size()}};
  msghdr message{};
  message.msg_iov = vectors;
  message.msg_iovlen = body.empty() ? 1 : 2;
  ssize_t sent;
  do {
    sent = ::sendmsg(socket_.native_handle(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return 0;
  return sent;
}

Task<error_code> ClientConnection::SendAll(std::string_view head, std::string_view body,
                                           int64_t idle_timeout_ms) {
  auto self = shared_from_this();
  if (!open_) co_return Outcome(asio::error::not_connected);
  ssize_t sent = SendNow(head, body);
  if (sent < 0) co_return error_code(errno, boost::system::system_category());
  size_t done = static_cast<size_t>(sent);
  error_code error;
  while (done < head.size() + body.size() && !error) {
    std::string_view rest =
        done < head.size() ? head.substr(done) : body.substr(done - head.size());
    SetDeadline(idle_timeout_ms);
    if (tls_ != nullptr) {
      error = Outcome(co_await WaitFor(TlsSession::Status::kWantWrite));
      if (error) break;
      // TlsSession::Write must be called again with the same bytes.
      const size_t in_head = std::min(done, head.size());
      sent = SendNow(head.substr(in_head), body.substr(done - in_head));
      if (sent < 0) error = asio::error::broken_pipe;
      done += static_cast<size_t>(std::max<ssize_t>(sent, 0));
      continue;
    }
    auto [failed, count] = co_await socket_.async_write_some(asio::buffer(rest.data(), rest.size()),
                                                             asio::as_tuple(kUseTask));
    error = Outcome(failed);
    done += count;
  }
  co_return error;
}

Task<error_code> ClientConnection::ReadSome(size_t limit, int64_t timeout_ms) {
  auto self = shared_from_this();
  if (!open_) co_return Outcome(asio::error::not_connected);
  if (input.size() >= limit) co_return error_code(asio::error::no_buffer_space);
  // Rounds up to a multiple of kReadBytes, so that the rest of a line does not enlarge the buffer.
  const auto room =
      input.prepare(std::min(kReadBytes - input.size() % kReadBytes, limit - input.size()));
  SetDeadline(timeout_ms);
  if (tls_ != nullptr) co_return Outcome(co_await ReadTls(room));
  auto [failed, count] = co_await socket_.async_read_some(room, asio::as_tuple(kUseTask));
  input.commit(count);
  co_return Outcome(failed);
}

Task<error_code> ClientConnection::ReadTls(asio::mutable_buffer room) {
  while (true) {
    const TlsSession::Step step = tls_->Read(static_cast<char*>(room.data()), room.size());
    if (step.status == TlsSession::Status::kOk) {
      input.commit(step.bytes);
      // Yields: a fast engine must not block other coroutines of the loop.
      co_await asio::post(loop_.executor(), kUseTask);
      co_return error_code();
    }
    if (error_code error = co_await WaitFor(step.status)) co_return error;
  }
}

bool ClientConnection::LooksAlive() {
  if (!open_) return false;
  // Under TLS the peer may have sent records without data, such as session tickets.
  if (tls_ != nullptr) return tls_->HasNothingToRead();
  char byte;
  ssize_t got = ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

std::shared_ptr<ClientConnection> ClientPool::Take(const Origin& origin) {
  auto found = idle_.find(origin);
  if (found == idle_.end()) return nullptr;
  auto& connections = found->second;
  int64_t oldest_us = MonotonicNowUs() - options_.keep_alive_ms * 1000;
  while (!connections.empty()) {
    auto connection = std::move(connections.back());
    connections.pop_back();
    if (connection->idle_since_us < oldest_us) {
      connections.clear();  // the other connections are even older
      return nullptr;
    }
    if (connection->LooksAlive()) return connection;
  }
  return nullptr;
}

void ClientPool::Give(std::shared_ptr<ClientConnection> connection) {
  auto& connections = idle_[connection->origin()];
  if (connections.size() >= options_.max_idle_per_origin) connections.erase(connections.begin());
  connection->idle_since_us = MonotonicNowUs();
  connection->used = true;
  connections.push_back(std::move(connection));
  if (!pruning_) PruneLater();
}

void ClientPool::PruneLater() {
  pruning_ = true;
  loop_.RunAfter(options_.keep_alive_ms, [weak = weak_from_this()] {
    auto self = weak.lock();
    if (!self) return;
    self->pruning_ = false;
    int64_t oldest_us = MonotonicNowUs() - self->options_.keep_alive_ms * 1000;
    for (auto entry = self->idle_.begin(); entry != self->idle_.end();) {
      std::erase_if(entry->second, [oldest_us](const std::shared_ptr<ClientConnection>& idle) {
        return idle->idle_since_us < oldest_us;
      });
      entry = entry->second.empty() ? self->idle_.erase(entry) : std::next(entry);
    }
    if (!self->idle_.empty()) self->PruneLater();
  });
}

size_t ClientPool::size() const {
  size_t count = 0;
  for (const auto& [origin, connections] : idle_) count += connections.size();
  return count;
}

}  // namespace tollgate::http
