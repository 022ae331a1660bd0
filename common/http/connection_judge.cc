// Checks a head before its body is buffered (decision 46).
#include <exception>

#include "common/http/connection.h"
#include "common/observability/log.h"

namespace tollgate::http {

// A body that arrived with its head needs no memory beyond the read buffer. Its handler checks the
// head, so the common small request has no extra cost here. Returns true if buffered bytes remain
// to be processed.
bool Connection::JudgeHead() {
  if (!core_->options().judge_head) return BeginBody();
  const Framing& framing = reader_.framing();
  if (framing.chunked) {
    state_ = State::kBody;
    if (!in_.empty()) ProcessBody();
    if (state_ != State::kBody) return false;  // complete, or malformed
  } else if (framing.content_length <= in_.size()) {
    return BeginBody();
  }
  ClearDeadline();
  HeadVerdict verdict = core_->options().judge_head(request_, loop_);
  if (verdict.refusal) {
    Refuse(*verdict.refusal);
    return false;
  }
  if (!verdict.pending) {
    const bool more = BeginBody();
    if (verdict.without_credential && state_ == State::kBody) core_->SetIdle(*this, true);
    return more;
  }
  state_ = State::kJudging;
  core_->RequestStarted();
  loop_.Spawn(AwaitVerdict(shared_from_this(), std::move(*verdict.pending)));
  return false;
}

// The request does not change during the wait: this state parses nothing.
Task<void> Connection::AwaitVerdict(std::shared_ptr<Connection> self,
                                    Task<std::optional<HttpResponse>> pending) {
  std::optional<HttpResponse> refusal;
  try {
    refusal = co_await std::move(pending);
  } catch (const std::exception& exception) {
    log::Error("the judgement of a head threw an exception",
               {{"x_request_id", self->request_.x_request_id}, {"what", exception.what()}});
    refusal = self->core_->RenderError(
        Error{ErrorId::kServerError, "", "", 0, "the head was not judged"}, self->request_);
  }
  // Posted: the bytes after the head must not be processed within another call of Process.
  self->loop_.Post([self, refusal = std::move(refusal)] { self->OnVerdict(refusal); });
  self->core_->RequestEnded();
}

void Connection::OnVerdict(const std::optional<HttpResponse>& refusal) {
  if (state_ != State::kJudging) return;  // closed in the meantime
  if (refusal) return Refuse(*refusal);
  BeginBody();
  Process();
}

}  // namespace tollgate::http
