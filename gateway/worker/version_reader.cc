#include "gateway/worker/version_reader.h"

#include <utility>

#include "common/runtime/loop.h"

namespace tollgate::gateway {

Task<std::optional<int64_t>> VersionReader::Read() {
  if (!next_) next_ = std::make_shared<Call>(loop_);
  const std::shared_ptr<Call> call = next_;
  if (!running_) {
    running_ = true;
    loop_.Spawn(Run(shared_from_this()));
  }
  (void)co_await call->done.Wait();
  co_return call->version;
}

Task<void> VersionReader::Run(std::shared_ptr<VersionReader> self) {
  while (self->next_) {
    const int64_t pause_us = self->last_call_us_ + self->pause_us_ - self->clock_.MonotonicUs();
    if (pause_us > 0) co_await self->loop_.Sleep(pause_us / 1000 + 1);
    const std::shared_ptr<Call> call = std::exchange(self->next_, nullptr);
    if (!self->stopped_) {
      self->last_call_us_ = self->clock_.MonotonicUs();
      ++self->calls_;
      const auto answer = co_await self->auth_.ReadVersion({});
      if (answer) call->version = answer->version();
    }
    call->done.Set();
  }
  self->running_ = false;
}

}  // namespace tollgate::gateway
