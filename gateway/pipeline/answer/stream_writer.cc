#include "gateway/pipeline/answer/stream_writer.h"

#include "common/json/json.h"

namespace tollgate::gateway {

void StreamWriter::ArmTimer() {
  if (keep_alive_ms_ <= 0) return;
  wrote_since_timer_ = false;
  timer_ = exchange_.loop().RunAfter(keep_alive_ms_, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self || self->closed_) return;
    self->timer_ = 0;
    // Any write counts as activity: a comment follows one to two intervals of silence.
    if (self->waiting_ && !self->wrote_since_timer_ && !self->disconnected_) {
      self->writing_comment_ = true;
      self->exchange_.loop().Spawn(WriteComment(self));
    }
    self->ArmTimer();
  });
}

Task<void> StreamWriter::WriteComment(std::shared_ptr<StreamWriter> self) {
  std::string comment;
  self->encoder_.KeepAlive(comment);
  (void)co_await self->Write(std::move(comment));
  self->writing_comment_ = false;
  self->comment_written_.NotifyAll();
}

Task<void> StreamWriter::EndWait() {
  waiting_ = false;
  while (writing_comment_) (void)co_await comment_written_.Wait();
}

Task<bool> StreamWriter::Write(std::string bytes) {
  if (!begun_ && !disconnected_) {
    begun_ = true;
    headers_.insert(headers_.begin(), {{"content-type", "text/event-stream; charset=utf-8"},
                                       {"cache-control", "no-cache"},
                                       {"x-accel-buffering", "no"}});
    disconnected_ = !co_await exchange_.BeginStream(200, std::move(headers_));
  }
  if (disconnected_) co_return false;
  json::EscapeLineBreaks(bytes);
  wrote_since_timer_ = true;
  disconnected_ = !co_await exchange_.Write(std::move(bytes));
  co_return !disconnected_;
}

void StreamWriter::Close() {
  closed_ = true;
  if (timer_ != 0) exchange_.loop().CancelTimer(timer_);
  timer_ = 0;
}

}  // namespace tollgate::gateway
