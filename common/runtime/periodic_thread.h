// A thread that repeats one step until it is stopped.
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

  // Runs the step at once, then each time after a pause of this length. Once only. What the step
  // uses must live until Stop has returned. The name is for operators: at most 15 bytes.
  void Start(const char* name, std::chrono::milliseconds pause, std::function<void()> step);
  // Started and not stopped yet.
  bool running() const { return thread_.joinable(); }
  // Ends the pause: the step runs at once, or once more after the one that runs.
  void Wake();
  // Ends the pause and waits for a step that runs. Also without Start, and again.
  void Stop();
  // For steps of several parts: the rest is not wanted any more.
  bool stopping() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  bool woken_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace tollgate
