// Runs admin calls on threads that may block (an executor of handle.h).
#pragma once

#include <atomic>
#include <functional>
#include <utility>

#include "common/admin/handle.h"
#include "common/runtime/thread_pool.h"

namespace tollgate::admin {

// The pool belongs to the T in the slot, which is null while the service does not run.
template <typename T>
struct OnPool {
  using Given = T;
  const std::atomic<T*>& slot;
  ThreadPool& (T::*pool)() = &T::workers;

  // Runs work(given), which ends the call, or refuses the call.
  void Post(const Call& call, std::function<void(T&)> work) const {
    T* const given = slot.load();
    if (given == nullptr) return call.Refuse(Unavailable("the service is not running").error);
    const bool queued = (given->*pool)().Submit([given, work = std::move(work)] { work(*given); });
    if (!queued) call.Refuse(Unavailable("too many calls are queued").error);
  }
  template <typename Work>
  void Run(grpc::CallbackServerContext*, const Call& call, Work work) const {
    Post(call, [call, work = std::move(work)](T& given) { call.Finish(work(given)); });
  }
};

}  // namespace tollgate::admin
