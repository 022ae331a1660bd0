#include "common/http/connection.h"

#include <algorithm>
#include <exception>

#include "common/base/clock.h"
#include "common/observability/log.h"

namespace tollgate::http {
namespace {

// Room for bytes after the head in the same buffer.
constexpr size_t kHeadSlack = 4 * 1024;
// Most body bytes per read. The buffer does not grow beyond what has arrived.
constexpr size_t kMaxBodyRead = 64 * 1024;
constexpr size_t kMinBodyRead = 4 * 1024;
constexpr int64_t kDrainLingerMs = 200;

}  // namespace

// Completion handler of a read. Keeps the connection alive during the read.
struct Connection::ReadDone {
  std::shared_ptr<Connection> self;
  void operator()(boost::system::error_code error, size_t count) { self->OnRead(error, count); }
};

Connection::Connection(std::shared_ptr<ServerCore> core, Loop& loop, int shard, TcpSocket socket,
                       std::unique_ptr<TlsSession> tls, std::string peer_address,
                       ConnectionSlots::Slot slot)
    : core_(std::move(core)),
      loop_(loop),
      shard_(shard),
      socket_(std::move(socket)),
      tls_(std::move(tls)),
      peer_address_(std::move(peer_address)),
      slot_(std::move(slot)),
      body_memory_(core_->options().memory.get()) {
  ResetRequest();
}

void Connection::Start() {
  SetIdleDeadline();
  core_->SetIdle(*this, true);
  StartRead();
}

size_t Connection::BytesWaiting() {
  boost::system::error_code error;
  const size_t bytes = socket_.available(error);
  return error ? 0 : bytes;
}

void Connection::StartRead() {
  if (reading_ || end_of_input_ || disconnected_ || state_ == State::kClosed) return;
  if (state_ == State::kJudging) return;  // bytes after the head stay in the kernel
  const ServerOptions& options = core_->options();
  if (state_ != State::kBody) in_.Shrink();
  size_t wanted = 512;
  size_t limit = std::max(options.max_head_bytes + kHeadSlack, options.max_pipelined_bytes);
  if (state_ == State::kLinger) in_.Consume(in_.size());
  if (state_ == State::kBody) {
    wanted = std::clamp(BytesWaiting(), kMinBodyRead, kMaxBodyRead);
    limit = std::max(limit, in_.size() + wanted);
  }
  const size_t room = in_.MakeRoom(wanted, limit);
  if (room == 0) return;  // limit for pipelined bytes reached: the rest stays in the kernel
  reading_ = true;
  if (tls_ != nullptr) return ReadTls(in_.tail(), room);
  socket_.async_read_some(asio::buffer(in_.tail(), room), ReadDone{shared_from_this()});
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
  in_.Added(count);
  if (state_ == State::kBody) body_window_bytes_ += count;
  if (state_ == State::kHead || state_ == State::kBody) return Process();
  if (state_ == State::kLinger) {
    int64_t left_ms = (linger_until_us_ - MonotonicNowUs()) / 1000;
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
    case State::kJudging:
      return;  // the verdict comes first
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

// Returns true if buffered bytes remain to be processed.
bool Connection::ProcessHead() {
  if (in_.empty()) {
    if (end_of_input_) Close();
    return false;
  }
  const RequestReader::Step step = reader_.ReadHead(in_.view(), core_->request_limits(), &request_);
  in_.Consume(step.consumed);
  switch (step.status) {
    case RequestReader::Status::kNeedMore:
      if (end_of_input_) {
        Close();
      } else if (deadline_ != Deadline::kHead) {
        SetDeadline(Deadline::kHead, core_->options().head_timeout_ms);
        if (!is_linked()) core_->SetIdle(*this, true);
      }
      return false;
    case RequestReader::Status::kBad:
    case RequestReader::Status::kTooLarge:
      RefuseInput(step.status);
      return false;
    case RequestReader::Status::kHead:
    case RequestReader::Status::kDone:
      break;
  }
  core_->SetIdle(*this, false);
  keep_alive_ = reader_.framing().keep_alive;
  AssignRequestId();
  if (ShedAtHead()) return false;
  return JudgeHead();
}

void Connection::RefuseInput(RequestReader::Status status) {
  core_->SetIdle(*this, false);
  if (status == RequestReader::Status::kTooLarge) {
    return Refuse(Error{.id = ErrorId::kRequestTooLarge,
                        .message = "the request body is too large",
                        .reason = Reason::kBodyTooLarge});
  }
  summary_.parsers_disagreed = reader_.disagreed();
  Refuse(Error{ErrorId::kBadRequest, reader_.reason()});
}

// Returns true if buffered bytes remain to be processed.
bool Connection::BeginBody() {
  if (!reader_.framing().has_body()) {
    StartHandler();
    return false;
  }
  state_ = State::kBody;
  body_window_bytes_ = 0;
  body_started_us_ = MonotonicNowUs();
  SetDeadline(Deadline::kBody,
              std::min(core_->options().body_window_ms, core_->options().max_body_ms));
  if (reader_.framing().expect_continue && in_.empty()) {
    TrySend({"HTTP/1.1 100 Continue\r\n\r\n"});
  }
  return true;
}

bool Connection::ProcessBody() {
  if (!ReserveBody(request_.body.size() + in_.size())) return false;
  const RequestReader::Step step = reader_.ReadBody(in_.view(), &request_.body);
  in_.Consume(step.consumed);
  body_bytes_ = request_.body.size();
  if (step.status == RequestReader::Status::kDone) {
    StartHandler();
  } else if (step.status != RequestReader::Status::kNeedMore) {
    RefuseInput(step.status);
  } else if (end_of_input_) {
    Refuse(Error{ErrorId::kBadRequest, "the request body ended early"});
  }
  return false;
}

void Connection::AssignRequestId() {
  if (!request_.x_request_id.empty()) return;
  std::string_view sent = request_.header("x-request-id");
  bool is_forwarded = false;
  for (const auto& [name, value] : request_.headers) {
    if (name == "x-request-id") request_.x_request_id_was_sent = true;
    is_forwarded = is_forwarded || name == "x-forwarded-for";
  }
  request_.id = Id::New();
  request_.x_request_id =
      IsWellFormedRequestId(sent) ? std::string(sent) : "req_" + request_.id.ToBase62();
  request_.peer_address =
      core_->options().trusted_proxies.ClientAddress(peer_address_, request_.headers);
  if (is_forwarded && request_.peer_address == peer_address_) core_->NoteForwarded(peer_address_);
}

void Connection::StartHandler() {
  state_ = State::kHandling;
  if (is_linked()) core_->SetIdle(*this, false);
  ClearDeadline();
  started_us_ = MonotonicNowUs();
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
  on_disconnect_ = on_drain_over_ = nullptr;
  if (probe_timer_ != 0) loop_.CancelTimer(std::exchange(probe_timer_, 0));
  summary_.duration_us = MonotonicNowUs() - started_us_;
  summary_.body_bytes_in = body_bytes_;
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
    core_->SetIdle(*this, true);
    if (core_->draining()) CloseIfIdle();
    StartRead();
  } else {
    // Posted: a thousand pipelined requests must not nest a thousand calls.
    loop_.Post([self = shared_from_this()] { self->Process(); });
  }
}

void Connection::ResetRequest() {
  reader_.Reset();
  request_ = {};
  body_bytes_ = 0;
  body_memory_.Shrink(0);
  responded_ = streaming_ = chunked_ = event_stream_ = ended_ = head_pending_ = false;
  trailers_.clear();
  probes_ = 0;
  summary_ = {};
  started_us_ = 0;
}

void Connection::Refuse(const Error& error) {
  AssignRequestId();
  Refuse(core_->RenderError(error, request_));
}

// Responds without calling a handler. The connection reads no further request.
void Connection::Refuse(const HttpResponse& response) {
  keep_alive_ = false;
  if (started_us_ == 0) started_us_ = MonotonicNowUs();
  summary_.framing_error = true;
  summary_.status = response.status;
  WriteHead(response.status, response.headers, BodyForm::kLength, response.body.size());
  responded_ = true;
  bool head_only = request_.method == "HEAD";
  if (TrySend({head_, head_only ? std::string_view() : std::string_view(response.body)})) {
    summary_.body_bytes_out = response.body.size();
  }
  summary_.duration_us = MonotonicNowUs() - started_us_;
  summary_.body_bytes_in = body_bytes_;
  summary_.client_disconnected = disconnected_;
  if (core_->options().on_done) core_->options().on_done(request_, summary_);
  if (disconnected_) return Close();
  Linger();
}

// Delays the close, so that the client can read the response: closing with unread bytes resets the
// connection, and the response could be lost.
void Connection::Linger() {
  state_ = State::kLinger;
  ShutdownSend();
  if (end_of_input_) return Close();
  const ServerOptions& options = core_->options();
  const int64_t linger_ms = core_->draining() ? kDrainLingerMs : options.linger_ms;
  linger_until_us_ = MonotonicNowUs() + linger_ms * 1000;
  // The received part of the body is no longer needed.
  std::string().swap(request_.body);
  body_memory_.Shrink(0);
  SetDeadline(Deadline::kLinger, std::min(linger_ms, options.linger_idle_ms));
  core_->SetIdle(*this, true);
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
  body_memory_.Shrink(0);
  core_->Closed(*this);
}

}  // namespace tollgate::http
