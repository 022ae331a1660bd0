// Time-outs, and clients that leave while their request runs.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "common/base/clock.h"
#include "common/http/connection.h"

namespace tollgate::http {
namespace {

// A client that has closed its side is either gone, or has only said that it has nothing more to
// send. It is asked by a few bytes that mean nothing: who is gone answers with a reset. The first
// questions follow each other closely, so that the engine of a client that left is stopped within
// 500 ms.
constexpr int64_t kProbeDelaysMs[] = {30, 70, 150, 150};
constexpr int64_t kLateProbeDelayMs = 400;
// Some clients take no more than five interim answers.
constexpr int kMaxInterimProbes = 4;
// For the first request of a connection that came in the last moment.
constexpr int64_t kDrainIdleMs = 500;

}  // namespace

// One timer of the loop per connection: it is moved only when it would come too late, and looks
// when it comes whether its deadline still stands.
void Connection::SetDeadline(Deadline kind, int64_t delay_ms) {
  deadline_ = kind;
  deadline_us_ = SystemClock::Get().MonotonicUs() + delay_ms * 1000;
  if (timer_ != 0 && timer_us_ <= deadline_us_) return;
  if (timer_ != 0) loop_.CancelTimer(timer_);
  ArmTimer();
}

// Until the next request begins, or the first can.
void Connection::SetIdleDeadline() {
  const ServerOptions& options = core_->options();
  const bool handshake = tls_ != nullptr && !tls_->established();
  int64_t delay_ms = handshake ? options.handshake_timeout_ms : options.idle_timeout_ms;
  if (core_->draining()) delay_ms = std::min(delay_ms, kDrainIdleMs);
  SetDeadline(handshake ? Deadline::kHandshake : Deadline::kIdle, delay_ms);
}

void Connection::ArmTimer() {
  timer_us_ = deadline_us_;
  int64_t delay_us = deadline_us_ - SystemClock::Get().MonotonicUs();
  timer_ = loop_.RunAfter((std::max<int64_t>(delay_us, 0) + 999) / 1000, [self = weak_from_this()] {
    if (auto connection = self.lock()) connection->OnTimer();
  });
}

void Connection::OnTimer() {
  timer_ = 0;
  if (deadline_ == Deadline::kNone) return;
  if (SystemClock::Get().MonotonicUs() < deadline_us_) return ArmTimer();
  switch (std::exchange(deadline_, Deadline::kNone)) {
    case Deadline::kHandshake:
    case Deadline::kIdle:
    case Deadline::kHead:
    case Deadline::kLinger:
      return Close();
    case Deadline::kBody:
      return OnBodyWindow();
    case Deadline::kWrite:
      return MarkGone();
    case Deadline::kNone:
      return;
  }
}

void Connection::OnBodyWindow() {
  const ServerOptions& options = core_->options();
  uint64_t least =
      static_cast<uint64_t>(options.min_body_bytes_per_second * options.body_window_ms / 1000);
  if (body_window_bytes_ < std::max<uint64_t>(least, 1)) {
    return Refuse(Error{ErrorId::kBadRequest, "the request body came too slowly"});
  }
  body_window_bytes_ = 0;
  SetDeadline(Deadline::kBody, options.body_window_ms);
}

void Connection::MarkGone() {
  if (gone_) return;
  gone_ = true;
  boost::system::error_code ignored;
  socket_.close(ignored);
  if (state_ != State::kHandling || !on_disconnect_) return;
  // Never from inside a call of the handler's own.
  loop_.Post([self = shared_from_this()] {
    auto callback = std::exchange(self->on_disconnect_, nullptr);
    if (callback) callback();
  });
}

void Connection::StartProbes() {
  if (probe_timer_ == 0) Probe();
}

void Connection::Probe() {
  probe_timer_ = 0;
  if (state_ != State::kHandling || gone_ || ended_) return;
  if (PeerIsDead()) return MarkGone();
  if (out_.empty() && !flushing_) {
    if (!answered_) {
      if (!framing_.http_1_0 && probes_ < kMaxInterimProbes)
        TrySend({"HTTP/1.1 100 Continue\r\n\r\n"});
    } else if (streaming_ && event_stream_ && !head_waits_ && request_.method != "HEAD") {
      TrySend({chunked_ ? std::string_view("4\r\n: \n\n\r\n") : std::string_view(": \n\n")});
    }
  }
  if (gone_) return;
  size_t step = static_cast<size_t>(probes_++);
  int64_t delay_ms = step < std::size(kProbeDelaysMs) ? kProbeDelaysMs[step] : kLateProbeDelayMs;
  probe_timer_ = loop_.RunAfter(delay_ms, [self = weak_from_this()] {
    if (auto connection = self.lock()) connection->Probe();
  });
}

bool Connection::PeerIsDead() {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(socket_.native_handle(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return true;
  return info.tcpi_state == TCP_CLOSE;
}

}  // namespace tollgate::http
