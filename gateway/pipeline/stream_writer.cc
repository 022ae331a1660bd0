#include "gateway/pipeline/stream_writer.h"

namespace tollgate::gateway {

void StreamWriter::Arm() {
  if (keep_alive_ms_ <= 0) return;
  wrote_ = false;
  timer_ = exchange_.loop().RunAfter(keep_alive_ms_, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self || self->closed_) return;
    self->timer_ = 0;
    // A stream that was written to is not silent; up to twice the interval may pass, never less.
    if (self->waiting_ && !self->wrote_ && !self->gone_) {
      self->commenting_ = true;
      self->exchange_.loop().Spawn(WriteComment(self));
    }
    self->Arm();
  });
}

Task<void> StreamWriter::WriteComment(std::shared_ptr<StreamWriter> self) {
  std::string comment;
  self->encoder_.KeepAlive(comment);
  (void)co_await self->Write(std::move(comment));
  self->commenting_ = false;
  self->written_.NotifyAll();
}

Task<void> StreamWriter::EndWait() {
  waiting_ = false;
  while (commenting_) (void)co_await written_.Wait();
}

Task<bool> StreamWriter::Write(std::string bytes) {
  if (!begun_ && !gone_) {
    begun_ = true;
    headers_.insert(headers_.begin(), {{"content-type", "text/event-stream"},
                                       {"cache-control", "no-cache"},
                                       {"x-accel-buffering", "no"}});
    gone_ = !co_await exchange_.BeginStream(200, std::move(headers_));
  }
  if (gone_) co_return false;
  wrote_ = true;
  gone_ = !co_await exchange_.Write(std::move(bytes));
  co_return !gone_;
}

void StreamWriter::Close() {
  closed_ = true;
  if (timer_ != 0) exchange_.loop().CancelTimer(timer_);
  timer_ = 0;
}

}  // namespace tollgate::gateway
