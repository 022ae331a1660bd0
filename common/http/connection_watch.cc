// Timeouts, and detection of clients that disconnect while their request runs.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "common/base/clock.h"
#include "common/http/connection.h"
#include "common/http/server_metrics.h"

namespace tollgate::http {
namespace {

// A client that has closed its sending side has either disconnected or may still read. Short probes
// without meaning tell: a closed socket replies with a reset. The first probes are close together,
// so that the engine of a disconnected client is stopped within 500 ms.
constexpr int64_t kProbeDelaysMs[] = {30, 70, 150, 150};
constexpr int64_t kLateProbeDelayMs = 400;
// Some clients accept at most five interim responses.
constexpr int kMaxInterimProbes = 4;
// Time for the first request of a connection accepted just before the drain.
constexpr int64_t kDrainIdleMs = 500;

}  // namespace

// There is one timer per connection. It is moved only if it would fire too late; when it fires, it
// checks whether the deadline has passed.
void Connection::SetDeadline(Deadline kind, int64_t delay_ms) {
  deadline_ = kind;
  deadline_us_ = SystemClock::Get().MonotonicUs() + delay_ms * 1000;
  if (timer_ != 0 && timer_us_ <= deadline_us_) return;
  if (timer_ != 0) loop_.CancelTimer(timer_);
  ArmTimer();
}

// The deadline for the next request, or for the TLS handshake.
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
      CountSlow(SlowPart::kHandshake);
      return Close();
    case Deadline::kHead:
      CountSlow(SlowPart::kHead);
      return Close();
    case Deadline::kIdle:
    case Deadline::kLinger:
      return Close();
    case Deadline::kBody:
      return OnBodyWindow();
    case Deadline::kWrite:
      CountSlow(SlowPart::kReader);
      return MarkDisconnected();
    case Deadline::kNone:
      return;
  }
}

void Connection::CountSlow(SlowPart part) {
  if (core_->options().metrics != nullptr) core_->options().metrics->slow(part).Increment();
}

void Connection::OnBodyWindow() {
  const ServerOptions& options = core_->options();
  const int64_t left_ms =
      options.max_body_ms - (SystemClock::Get().MonotonicUs() - body_started_us_) / 1000;
  if (left_ms <= 0) {
    CountSlow(SlowPart::kBody);
    return Refuse(Error{ErrorId::kBadRequest, "the request body took too long"});
  }
  uint64_t least =
      static_cast<uint64_t>(options.min_body_bytes_per_second * options.body_window_ms / 1000);
  if (body_window_bytes_ < std::max<uint64_t>(least, 1)) {
    CountSlow(SlowPart::kBody);
    return Refuse(Error{ErrorId::kBadRequest, "the request body was sent too slowly"});
  }
  body_window_bytes_ = 0;
  SetDeadline(Deadline::kBody, std::min(options.body_window_ms, left_ms));
}

void Connection::MarkDisconnected() {
  if (disconnected_) return;
  disconnected_ = true;
  boost::system::error_code ignored;
  socket_.close(ignored);
  if (state_ != State::kHandling || !on_disconnect_) return;
  // Posted: the callback must not run within a call of the handler.
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
  if (state_ != State::kHandling || disconnected_ || ended_) return;
  if (PeerHasReset()) return MarkDisconnected();
  if (out_.empty() && !flushing_) {
    if (!responded_) {
      if (!reader_.framing().http_1_0 && probes_ < kMaxInterimProbes)
        TrySend({"HTTP/1.1 100 Continue\r\n\r\n"});
    } else if (streaming_ && event_stream_ && !head_pending_ && request_.method != "HEAD") {
      TrySend({chunked_ ? std::string_view("4\r\n: \n\n\r\n") : std::string_view(": \n\n")});
    }
  }
  if (disconnected_) return;
  size_t step = static_cast<size_t>(probes_++);
  int64_t delay_ms = step < std::size(kProbeDelaysMs) ? kProbeDelaysMs[step] : kLateProbeDelayMs;
  probe_timer_ = loop_.RunAfter(delay_ms, [self = weak_from_this()] {
    if (auto connection = self.lock()) connection->Probe();
  });
}

bool Connection::PeerHasReset() {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(socket_.native_handle(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return true;
  return info.tcpi_state == TCP_CLOSE;
}

}  // namespace tollgate::http
