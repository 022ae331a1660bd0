#include "common/http/connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <exception>

#include "common/base/clock.h"
#include "common/observability/log.h"

namespace tollgate::http {
namespace {

// Room for bytes after the head in the same buffer.
constexpr size_t kHeadSlack = 4 * 1024;
constexpr size_t kBodyStep = 64 * 1024;
constexpr int64_t kDrainLingerMs = 200;

int64_t NowUs() { return SystemClock::Get().MonotonicUs(); }

}  // namespace

// The completion of a read; keeps the connection alive while one is under way.
struct Connection::ReadDone {
  std::shared_ptr<Connection> self;
  void operator()(boost::system::error_code error, size_t count) { self->OnRead(error, count); }
};

Connection::Connection(std::shared_ptr<ServerCore> core, Loop& loop, int shard, TcpSocket socket,
                       std::unique_ptr<TlsSession> tls, std::string peer_address)
    : core_(std::move(core)),
      loop_(loop),
      shard_(shard),
      socket_(std::move(socket)),
      tls_(std::move(tls)),
      peer_address_(std::move(peer_address)) {
  const ServerOptions& options = core_->options();
  head_limits_ = {options.max_head_bytes, options.max_target_bytes, options.max_fields};
  ResetRequest();
}

void Connection::Start() {
  SetIdleDeadline();
  StartRead();
}

void Connection::StartRead() {
  if (reading_ || end_of_input_ || disconnected_ || state_ == State::kClosed) return;
  char* target = nullptr;
  size_t room = 0;
  if (state_ == State::kBody && !framing_.chunked && in_.empty()) {
    // A body with Content-Length is read directly into its string, which grows with the received
    // bytes, not with the announced length.
    size_t length = static_cast<size_t>(framing_.content_length);
    if (body_filled_ == request_.body.size()) {
      request_.body.resize(std::min(length, std::max(kBodyStep, body_filled_ * 2)));
    }
    target = request_.body.data() + body_filled_;
    room = request_.body.size() - body_filled_;
    reading_body_ = true;
  } else {
    if (state_ == State::kLinger) in_.Consume(in_.size());
    const ServerOptions& options = core_->options();
    size_t limit = std::max(options.max_head_bytes + kHeadSlack, options.max_pipelined_bytes);
    room = in_.MakeRoom(state_ == State::kBody ? 16 * 1024 : 512, limit);
    if (room == 0) return;  // at the limit for pipelined bytes: the rest stays in the kernel
    target = in_.tail();
    reading_body_ = false;
  }
  reading_ = true;
  if (tls_ != nullptr) return ReadTls(target, room);
  socket_.async_read_some(asio::buffer(target, room), ReadDone{shared_from_this()});
}

void Connection::OnRead(boost::system::error_code error, size_t count) {
  reading_ = false;
  if (state_ == State::kClosed) return;
  if (error) {
    if (tls_ != nullptr && !tls_->established()) {
      OnHandshakeFailed();
    } else if (error == asio::error::eof) {
      end_of_input_ = true;
      OnEnd();
    } else if (state_ == State::kHandling) {
      MarkDisconnected();
    } else {
      Close();
    }
    return;
  }
  if (reading_body_) {
    body_filled_ += count;
    body_window_bytes_ += count;
  } else {
    in_.Added(count);
    if (state_ == State::kBody) body_window_bytes_ += count;
  }
  if (state_ == State::kHead || state_ == State::kBody) return Process();
  if (state_ == State::kLinger) {
    int64_t left_ms = (linger_until_us_ - NowUs()) / 1000;
    SetDeadline(Deadline::kLinger,
                std::clamp<int64_t>(left_ms, 0, core_->options().linger_idle_ms));
  }
  StartRead();
}

// The client has closed its sending side. It may still read.
void Connection::OnEnd() {
  switch (state_) {
    case State::kHead:
      if (in_.empty()) return Close();
      return Process();
    case State::kBody:
      return Refuse(Error{ErrorId::kBadRequest, "the request body ended early"});
    case State::kHandling:
      return StartProbes();
    case State::kLinger:
    case State::kClosed:
      return Close();
  }
}

void Connection::Process() {
  bool more = true;
  while (more) {
    if (state_ == State::kHead) {
      more = ProcessHead();
    } else if (state_ == State::kBody) {
      more = ProcessBody();
    } else {
      break;
    }
  }
  if (disconnected_ && state_ != State::kHandling) return Close();
  StartRead();
}

// Returns true if the buffered bytes must be processed further.
bool Connection::ProcessHead() {
  if (in_.empty()) {
    if (end_of_input_) Close();
    return false;
  }
  switch (scanner_.Scan(in_.view(), head_limits_)) {
    case HeadScanner::Status::kNeedMore:
      if (end_of_input_) {
        Close();
      } else if (deadline_ != Deadline::kHead) {
        SetDeadline(Deadline::kHead, core_->options().head_timeout_ms);
      }
      return false;
    case HeadScanner::Status::kBad: {
      // Parses what it can of the path, which selects the error envelope.
      std::string_view line = in_.view().substr(0, in_.view().find_first_of("\r\n"));
      ParseRequestLine(line, head_limits_, &request_, &framing_);
      Refuse(Error{ErrorId::kBadRequest, scanner_.reason()});
      return false;
    }
    case HeadScanner::Status::kComplete:
      break;
  }
  const char* wrong =
      ParseRequestHead(in_.view().substr(0, scanner_.size()), head_limits_, &request_, &framing_);
  if (wrong != nullptr) {
    Refuse(Error{ErrorId::kBadRequest, wrong});
    return false;
  }
  in_.Consume(scanner_.size());
  if (framing_.content_length > core_->options().max_body_bytes) {
    Refuse(Error{ErrorId::kRequestTooLarge, "the request body is too large"});
    return false;
  }
  BeginBody();
  return true;
}

void Connection::BeginBody() {
  keep_alive_ = framing_.keep_alive;
  AssignRequestId();
  if (!framing_.chunked && framing_.content_length == 0) {
    StartHandler();
    return;
  }
  state_ = State::kBody;
  if (framing_.chunked) {
    const ServerOptions& options = core_->options();
    chunks_ =
        ChunkDecoder(ChunkDecoder::Limits{options.max_body_bytes, options.max_chunk_extension_bytes,
                                          options.max_trailer_bytes, false});
  }
  body_window_bytes_ = 0;
  SetDeadline(Deadline::kBody, core_->options().body_window_ms);
  if (!framing_.expect_continue || !in_.empty()) return;
  if (core_->options().refuse_unread) {
    if (auto refusal = core_->options().refuse_unread(request_)) return Refuse(*refusal);
  }
  TrySend({"HTTP/1.1 100 Continue\r\n\r\n"});
}

bool Connection::ProcessBody() { return framing_.chunked ? TakeChunks() : TakeFixedLength(); }

bool Connection::TakeFixedLength() {
  size_t length = static_cast<size_t>(framing_.content_length);
  if (!in_.empty()) {
    size_t take = std::min(in_.size(), length - body_filled_);
    if (request_.body.size() < body_filled_ + take) request_.body.resize(body_filled_ + take);
    std::memcpy(request_.body.data() + body_filled_, in_.data(), take);
    in_.Consume(take);
    body_filled_ += take;
  }
  if (body_filled_ == length) {
    StartHandler();
    return false;
  }
  if (end_of_input_) Refuse(Error{ErrorId::kBadRequest, "the request body ended early"});
  return false;
}

bool Connection::TakeChunks() {
  ChunkDecoder::Step step = chunks_.Decode(in_.data(), in_.size());
  if (step.status == ChunkDecoder::Status::kBad) {
    Refuse(Error{ErrorId::kBadRequest, "malformed chunked body"});
    return false;
  }
  if (step.status == ChunkDecoder::Status::kTooLarge) {
    Refuse(Error{ErrorId::kRequestTooLarge, "the request body is too large"});
    return false;
  }
  request_.body.append(in_.data(), step.produced);
  body_filled_ = request_.body.size();
  in_.Consume(step.consumed);
  if (step.status == ChunkDecoder::Status::kDone) {
    StartHandler();
  } else if (end_of_input_) {
    Refuse(Error{ErrorId::kBadRequest, "the request body ended early"});
  }
  return false;
}

void Connection::AssignRequestId() {
  if (!request_.x_request_id.empty()) return;
  std::string_view sent = request_.header("x-request-id");
  for (const auto& [name, value] : request_.headers) {
    if (name == "x-request-id") request_.x_request_id_was_sent = true;
  }
  request_.x_request_id = IsWellFormedRequestId(sent) ? std::string(sent) : NewRequestId();
  request_.peer_address =
      core_->options().trusted_proxies.ClientAddress(peer_address_, request_.headers);
}

void Connection::StartHandler() {
  state_ = State::kHandling;
  ClearDeadline();
  started_us_ = NowUs();
  core_->RequestStarted();
  loop_.Spawn(Run(shared_from_this()));
  if (end_of_input_ && state_ == State::kHandling) StartProbes();
}

Task<void> Connection::Run(std::shared_ptr<Connection> self) {
  Connection& connection = *self;
  try {
    co_await connection.core_->handler()(connection);
  } catch (const std::exception& exception) {
    log::Error("request handler threw an exception",
               {{"x_request_id", connection.request_.x_request_id}, {"what", exception.what()}});
  }
  if (!connection.responded_) {
    co_await connection.Send(connection.core_->RenderError(
        Error{ErrorId::kServerError, "", "", 0, "the handler did not respond"},
        connection.request_));
  } else if (connection.streaming_ && !connection.ended_) {
    connection.Abort();
  }
  connection.FinishRequest();
}

void Connection::FinishRequest() {
  on_disconnect_ = nullptr;
  if (probe_timer_ != 0) loop_.CancelTimer(std::exchange(probe_timer_, 0));
  summary_.duration_us = NowUs() - started_us_;
  summary_.body_bytes_in = body_filled_;  // the handler may have moved the body out
  summary_.client_disconnected = disconnected_;
  if (core_->options().on_done) core_->options().on_done(request_, summary_);
  core_->RequestEnded();
  if (state_ == State::kClosed) return;
  if (disconnected_) return Close();
  if (!keep_alive_ || (end_of_input_ && in_.empty())) return Linger();
  ResetRequest();
  state_ = State::kHead;
  SetIdleDeadline();
  if (in_.empty()) {
    if (core_->draining()) CloseIfIdle();
    StartRead();
  } else {
    // Posted: a thousand pipelined requests must not nest a thousand calls.
    loop_.Post([self = shared_from_this()] { self->Process(); });
  }
}

void Connection::ResetRequest() {
  scanner_.Reset();
  framing_ = {};
  request_ = {};
  body_filled_ = 0;
  responded_ = streaming_ = chunked_ = event_stream_ = ended_ = head_pending_ = false;
  probes_ = 0;
  summary_ = {};
  started_us_ = 0;
}

void Connection::Refuse(const Error& error) {
  AssignRequestId();
  Refuse(core_->RenderError(error, request_));
}

// Responds without a handler; no further request is read from the connection.
void Connection::Refuse(const HttpResponse& response) {
  keep_alive_ = false;
  if (started_us_ == 0) started_us_ = NowUs();
  summary_.framing_error = true;
  summary_.status = response.status;
  head_.clear();
  AppendHead(response.status, response.headers);
  AppendLength(response.body.size());
  responded_ = true;
  bool head_only = request_.method == "HEAD";
  if (TrySend({head_, head_only ? std::string_view() : std::string_view(response.body)})) {
    summary_.body_bytes_out = response.body.size();
  }
  summary_.duration_us = NowUs() - started_us_;
  summary_.body_bytes_in = body_filled_;  // the handler may have moved the body out
  summary_.client_disconnected = disconnected_;
  if (core_->options().on_done) core_->options().on_done(request_, summary_);
  if (disconnected_) return Close();
  Linger();
}

// Closes after the client had time to read the response: closing with unread bytes resets the
// connection, and the response could be lost.
void Connection::Linger() {
  state_ = State::kLinger;
  ShutdownSend();
  if (end_of_input_) return Close();
  const ServerOptions& options = core_->options();
  const int64_t linger_ms = core_->draining() ? kDrainLingerMs : options.linger_ms;
  linger_until_us_ = NowUs() + linger_ms * 1000;
  SetDeadline(Deadline::kLinger, std::min(linger_ms, options.linger_idle_ms));
  StartRead();
}

void Connection::Close() {
  if (state_ == State::kClosed) return;
  state_ = State::kClosed;
  ClearDeadline();
  if (timer_ != 0) loop_.CancelTimer(std::exchange(timer_, 0));
  if (probe_timer_ != 0) loop_.CancelTimer(std::exchange(probe_timer_, 0));
  if (tls_ != nullptr && !disconnected_) tls_->SendClose();
  boost::system::error_code ignored;
  socket_.close(ignored);
  core_->Closed(*this);
}

// A request that has arrived is still served, in the kernel or already read: cancelling does not
// affect a read that has completed, and a cancelled read ends in Close.
void Connection::CloseIfIdle() {
  if (state_ != State::kHead || !in_.empty()) return;
  if (deadline_ == Deadline::kHandshake) return SetIdleDeadline();
  char byte;
  if (::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0) {
    return SetIdleDeadline();  // under TLS the bytes may be no request
  }
  if (!reading_) return Close();
  boost::system::error_code ignored;
  socket_.cancel(ignored);
}

void Connection::CloseNow() {
  if (state_ == State::kHandling) {
    MarkDisconnected();
  } else {
    Close();
  }
}

}  // namespace tollgate::http
