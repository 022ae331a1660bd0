// A child process of a test: has a log file and is killed with its parent.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tollgate::test {

// A folder that is removed with its contents, unless TOLLGATE_KEEP_TMP is set. If
// TOLLGATE_TEST_LOGS is set, its logs (*.log) are first copied to that folder.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

class Process {
 public:
  // Does not start the process. Standard output and error are appended to the log file.
  Process(std::string name, std::vector<std::string> command, std::string log_file);
  ~Process();  // kills
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // Call it on a thread that outlives the process: the kernel kills the child when the thread that
  // started it exits (PR_SET_PDEATHSIG).
  bool Start();
  // Signals are sent only while the process has not been waited for.
  void Signal(int signal);
  void Kill();  // SIGKILL, and waits
  // SIGTERM, waits up to the timeout, then SIGKILL. Returns the exit code, or -signal.
  int Terminate(int64_t timeout_ms = 60'000);
  // False once it has exited (and was waited for).
  bool Running();
  // Exit code, or -signal; meaningful when not running.
  int exit_code() const { return exit_code_; }
  // Whether it, or a core handler, wrote a core file when it ended.
  bool dumped_core() const { return dumped_core_; }
  pid_t pid() const { return pid_; }
  const std::string& name() const { return name_; }
  // The sanitizer report of the process, or how it crashed; "" when neither.
  // A kill by the test is not a crash.
  std::string Crash();
  // The last bytes of the log.
  std::string LogTail(size_t bytes = 8000) const;

 private:
  void Collected(int status);
  std::string name_;
  std::vector<std::string> command_;
  std::string log_file_;
  pid_t pid_ = -1;
  int exit_code_ = 0;
  bool dumped_core_ = false;
};

// The programs under test: environment TOLLGATE_BIN (ctest sets it).
std::string BinaryPath(const std::string& name);
bool BinaryExists(const std::string& name);

void WriteFile(const std::string& path, const std::string& text);  // replaces in one step
std::string ReadFile(const std::string& path);                     // "" when there is none
void SleepMs(int64_t ms);

// Polls until done() is true; false when it is not by then.
template <typename Done>
bool Within(Done done, int64_t limit_ms, int64_t step_ms = 5);

// WaitUntil for events that must happen: it waits at least a minute. A busy machine delays
// everything, and a delay is not a fault.
constexpr int64_t kLeastPatienceMs = 60'000;
template <typename Done>
bool WaitUntil(Done done, int64_t timeout_ms, int64_t step_ms = 5) {
  return Within(std::move(done), std::max(timeout_ms, kLeastPatienceMs), step_ms);
}

int64_t MonotonicUs();

template <typename Done>
bool Within(Done done, int64_t limit_ms, int64_t step_ms) {
  const int64_t deadline = MonotonicUs() + limit_ms * 1000;
  while (!done()) {
    if (MonotonicUs() > deadline) return false;
    SleepMs(step_ms);
  }
  return true;
}

}  // namespace tollgate::test
