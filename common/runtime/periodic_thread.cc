#include "common/runtime/periodic_thread.h"

#include <pthread.h>

#include <utility>

namespace tollgate {

void PeriodicThread::Start(const char* name, std::chrono::milliseconds pause,
                           std::function<void()> step) {
  thread_ = std::thread([this, pause, step = std::move(step)] {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      woken_ = false;
      lock.unlock();
      step();
      lock.lock();
      wake_.wait_for(lock, pause, [this] { return woken_ || stopping_; });
    }
  });
  pthread_setname_np(thread_.native_handle(), name);
}

void PeriodicThread::Wake() {
  {
    const std::lock_guard lock(mutex_);
    woken_ = true;
  }
  wake_.notify_all();
}

void PeriodicThread::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool PeriodicThread::stopping() const {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

}  // namespace tollgate
