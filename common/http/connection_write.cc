// Writes responses with one system call. Uses the reactor only if the socket's buffer is full.
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <boost/asio/as_tuple.hpp>
#include <cerrno>

#include "common/base/clock.h"
#include "common/http/connection.h"

namespace tollgate::http {
namespace {

constexpr size_t kKeepCapacity = 64 * 1024;

}  // namespace

void Connection::WriteHead(int status, const Headers& headers, BodyForm form, size_t length) {
  ResponseWriter writer(status);
  writer.Add(headers);
  writer.Add("x-request-id", request_.x_request_id);
  writer.Add("request-id", request_.x_request_id);
  writer.Add(core_->options().headers);
  if (core_->options().extra_headers) writer.Add(core_->options().extra_headers(request_));
  if (core_->draining()) keep_alive_ = false;
  if (!keep_alive_) {
    writer.Add("connection", "close");
  } else if (reader_.framing().http_1_0) {
    writer.Add("connection", "keep-alive");
  }
  if (form == BodyForm::kLength) writer.SetLength(length);
  if (form == BodyForm::kChunked) writer.SetChunked();
  head_.clear();
  writer.AppendTo(head_);
}

ssize_t Connection::SendNow(std::initializer_list<std::string_view> parts) {
  if (tls_ != nullptr) {
    const TlsSession::Step step = tls_->Write(parts);
    return step.status == TlsSession::Status::kBroken ? -1 : static_cast<ssize_t>(step.bytes);
  }
  std::array<iovec, 4> vectors;
  size_t count = 0;
  for (std::string_view part : parts) {
    if (part.empty()) continue;
    vectors[count++] = {const_cast<char*>(part.data()), part.size()};
  }
  msghdr message{};
  message.msg_iov = vectors.data();
  message.msg_iovlen = count;
  ssize_t sent;
  do {
    sent = ::sendmsg(socket_.native_handle(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return 0;
  return sent;
}

bool Connection::TrySend(std::initializer_list<std::string_view> parts) {
  if (disconnected_) return false;
  if (!out_.empty()) {
    for (std::string_view part : parts) out_.append(part);
    return true;
  }
  const ssize_t sent = SendNow(parts);
  if (sent < 0) {
    MarkDisconnected();
    return false;
  }
  size_t skip = static_cast<size_t>(sent);
  for (std::string_view part : parts) {
    size_t sent_bytes = std::min(skip, part.size());
    skip -= sent_bytes;
    out_.append(part.substr(sent_bytes));
  }
  return true;
}

Task<bool> Connection::Flush() {
  flushing_ = true;
  // Only probes are added to out_ during the wait.
  MemoryReservation output(core_->options().memory.get());
  output.Grow(static_cast<int64_t>(out_.capacity()));
  size_t done = 0;
  while (done < out_.size() && !disconnected_) {
    SetDeadline(Deadline::kWrite, core_->options().write_stall_ms);
    if (tls_ != nullptr) {
      const ssize_t sent = SendNow({std::string_view(out_).substr(done)});
      if (sent < 0) MarkDisconnected();
      if (sent <= 0 && !disconnected_) {
        auto [error] = co_await socket_.async_wait(TcpSocket::wait_write, asio::as_tuple(kUseTask));
        if (error) MarkDisconnected();
      }
      done += static_cast<size_t>(std::max<ssize_t>(sent, 0));
      continue;
    }
    auto [error, count] = co_await socket_.async_write_some(
        asio::buffer(out_.data() + done, out_.size() - done), asio::as_tuple(kUseTask));
    if (error) MarkDisconnected();
    done += count;
  }
  ClearDeadline();
  flushing_ = false;
  out_.clear();
  if (out_.capacity() > kKeepCapacity) std::string().swap(out_);
  co_return !disconnected_;
}

Task<bool> Connection::Send(HttpResponse response) {
  if (responded_) co_return false;
  responded_ = true;
  if (disconnected_) co_return false;
  const bool no_body = response.status == 204 || response.status == 304;
  WriteHead(response.status, response.headers, no_body ? BodyForm::kNone : BodyForm::kLength,
            response.body.size());
  std::string_view body = response.body;
  if (no_body || request_.method == "HEAD") body = {};
  summary_.status = response.status;
  summary_.first_byte_us = SystemClock::Get().MonotonicUs() - started_us_;
  if (!TrySend({head_, body})) co_return false;
  if (!out_.empty() && !co_await Flush()) co_return false;
  summary_.body_bytes_out = body.size();
  ended_ = true;
  co_return true;
}

Task<bool> Connection::BeginStream(int status, Headers headers) {
  if (responded_) co_return false;
  responded_ = streaming_ = true;
  if (disconnected_) co_return false;
  ReleaseBodyCopies();
  chunked_ = !reader_.framing().http_1_0;
  if (!chunked_) keep_alive_ = false;
  WriteHead(status, headers, chunked_ ? BodyForm::kChunked : BodyForm::kUntilClose);
  for (const auto& [name, value] : headers) {
    if (EqualsIgnoreCase(name, "content-type"))
      event_stream_ = value.starts_with("text/event-stream");
  }
  summary_.status = status;
  summary_.first_byte_us = SystemClock::Get().MonotonicUs() - started_us_;
  // The first bytes of the body nearly always follow in the same turn, so head and body are one
  // write.
  head_pending_ = true;
  loop_.AtEndOfTurn([self = shared_from_this()] { self->FlushHeadAtEndOfTurn(); });
  co_return true;
}

void Connection::FlushHeadAtEndOfTurn() {
  if (!head_pending_ || flushing_ || state_ != State::kHandling) return;
  head_pending_ = false;
  TrySend({head_});
}

Task<bool> Connection::Write(std::string bytes) {
  if (!streaming_ || ended_) co_return false;
  if (disconnected_) co_return false;
  if (bytes.empty() || request_.method == "HEAD") co_return true;
  std::string_view head;
  if (head_pending_) {
    head_pending_ = false;
    head = head_;
  }
  summary_.body_bytes_out += bytes.size();
  if (chunked_) {
    const std::string header = ChunkHeader(bytes.size());
    if (!TrySend({head, header, bytes, kChunkEnd})) co_return false;
  } else if (!TrySend({head, bytes})) {
    co_return false;
  }
  if (out_.empty()) co_return true;
  co_return co_await Flush();
}

Task<void> Connection::EndStream() {
  if (!streaming_ || ended_) co_return;
  ended_ = true;
  if (disconnected_) co_return;
  std::string_view head;
  if (head_pending_) {
    head_pending_ = false;
    head = head_;
  }
  const std::string end = LastChunk(trailers_);
  std::string_view last = chunked_ && request_.method != "HEAD" ? std::string_view(end) : "";
  if (!head.empty() || !last.empty()) {
    if (!TrySend({head, last})) co_return;
  }
  if (!out_.empty()) co_await Flush();
}

void Connection::Abort() {
  if (state_ != State::kHandling || ended_) return;
  responded_ = ended_ = true;
  keep_alive_ = false;
  // The client must receive everything sent so far. The missing last chunk marks the response as
  // incomplete.
  if (head_pending_) {
    head_pending_ = false;
    TrySend({head_});
  }
  if (!disconnected_) ShutdownSend();
}

void Connection::OnDisconnect(std::function<void()> callback) {
  if (disconnected_ && callback) {
    callback();
    return;
  }
  on_disconnect_ = std::move(callback);
}

}  // namespace tollgate::http
