// Hangs one thread of a process while the others run.
#pragma once

#include <sys/ptrace.h>
#include <sys/wait.h>

#include <filesystem>
#include <string>

#include "tests/support/process.h"

namespace tollgate::test {

// Stops one thread of a child, as if it waited for a lock, until it is destroyed.
class StoppedThread {
 public:
  StoppedThread(pid_t pid, const std::string& name) {
    for (const auto& task :
         std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task")) {
      if (ReadFile(task.path().string() + "/comm") == name + "\n") {
        thread_ = std::stoi(task.path().filename());
      }
    }
    stopped_ = thread_ != 0 && ::ptrace(PTRACE_SEIZE, thread_, nullptr, nullptr) == 0 &&
               ::ptrace(PTRACE_INTERRUPT, thread_, nullptr, nullptr) == 0 &&
               ::waitpid(thread_, nullptr, __WALL) == thread_;
  }
  ~StoppedThread() {
    if (stopped_) ::ptrace(PTRACE_DETACH, thread_, nullptr, nullptr);
  }
  StoppedThread(const StoppedThread&) = delete;
  StoppedThread& operator=(const StoppedThread&) = delete;
  bool stopped() const { return stopped_; }

 private:
  pid_t thread_ = 0;
  bool stopped_ = false;
};

}  // namespace tollgate::test
