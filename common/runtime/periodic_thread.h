// A thread that repeats a step until it is stopped.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace tollgate {

class PeriodicThread {
 public:
  PeriodicThread() = default;
  ~PeriodicThread() { Stop(); }
  PeriodicThread(const PeriodicThread&) = delete;
  PeriodicThread& operator=(const PeriodicThread&) = delete;

  // Runs the step at once, then after each pause of this length. Call it once. Everything that the
  // step uses must live until Stop has returned. name: shown to operators; at most 15 bytes.
  void Start(const char* name, std::chrono::milliseconds pause, std::function<void()> step);
  // Whether it was started and is not stopped yet.
  bool running() const { return thread_.joinable(); }
  // Ends the pause. The step runs at once, or once more after the running one.
  void Wake();
  // Ends the pause and waits for a running step. May be called without Start and repeatedly.
  void Stop();
  // For steps with several parts: true means skip the rest.
  bool stopping() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  bool woken_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace tollgate
