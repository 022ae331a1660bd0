#include "common/rpc/call.h"

#include <algorithm>
#include <chrono>

#include "common/rpc/error_status.h"

namespace tollgate::rpc {

UnaryWait::UnaryWait(Loop& loop, std::shared_ptr<PendingCall> call, int64_t timeout_ms,
                     CancelSlot* cancel)
    : call_(std::move(call)), cancel_(cancel), waiter_(loop) {
  if (cancel != nullptr) cancel->Set([context = &call_->context] { context->TryCancel(); });
  call_->waiter = &waiter_;
  call_->context.set_deadline(std::chrono::system_clock::now() +
                              std::chrono::milliseconds(std::max<int64_t>(timeout_ms, 1)));
}

UnaryWait::~UnaryWait() {
  call_->waiter = nullptr;
  if (cancel_ != nullptr) cancel_->Set(nullptr);
  if (!done_) call_->context.TryCancel();
}

std::function<void(grpc::Status)> UnaryWait::OnDone() const {
  return [call = call_](grpc::Status status) mutable {
    call->status = std::move(status);
    // Moves the whole call to the loop: its context holds the channel, and destroying a channel on
    // a thread of gRPC crashes the process (docs/design/toolchain.md 2).
    std::unique_ptr<OutsideWork> outside = std::move(call->outside);
    outside->loop().Post([call = std::move(call)] {
      if (call->waiter != nullptr) call->waiter->ResumeNow(true);
    });
  };
}

Result<void> UnaryWait::End(bool suspended) {
  done_ = suspended;
  if (!suspended) return FailWith(ErrorId::kServiceUnavailable, "", "the call was cancelled");
  if (!call_->status.ok()) return Fail{FromStatus(call_->status)};
  return {};
}

}  // namespace tollgate::rpc
