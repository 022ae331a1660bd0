// A child process of a test: started with a log file, killed with its parent, never left behind.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tollgate::test {

// A folder that is removed with everything in it, unless TOLLGATE_KEEP_TMP is set.
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
  // Nothing runs until Start. Output of both kinds is appended to the log file.
  Process(std::string name, std::vector<std::string> command, std::string log_file);
  ~Process();  // kills
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // From a thread that lives as long as the process shall: the kernel kills the child when the
  // thread that started it ends (PR_SET_PDEATHSIG).
  bool Start();
  // Signals reach a process that has not been waited for yet, and nothing else.
  void Signal(int signal);
  void Kill();  // SIGKILL, and waits
  // SIGTERM, waits up to the time-out, then SIGKILL. The exit code, or -signal.
  int Terminate(int64_t timeout_ms = 20'000);
  // False once it has ended (and was collected).
  bool Running();
  // Exit code, or -signal; meaningful when not running.
  int exit_code() const { return exit_code_; }
  pid_t pid() const { return pid_; }
  const std::string& name() const { return name_; }
  // What a sanitizer found in the process, or how it ended by itself and not well; "" when neither.
  // What the test itself killed is well.
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
};

// The programs under test: environment TOLLGATE_BIN (ctest sets it).
std::string BinaryPath(const std::string& name);
bool BinaryExists(const std::string& name);

void WriteFile(const std::string& path, const std::string& text);  // replaces in one step
std::string ReadFile(const std::string& path);                     // "" when there is none
void SleepMs(int64_t ms);

// Polls until done() is true; false when the time is over.
template <typename Done>
bool WaitUntil(Done done, int64_t timeout_ms, int64_t step_ms = 5);

int64_t MonotonicUs();

template <typename Done>
bool WaitUntil(Done done, int64_t timeout_ms, int64_t step_ms) {
  const int64_t deadline = MonotonicUs() + timeout_ms * 1000;
  while (!done()) {
    if (MonotonicUs() > deadline) return false;
    SleepMs(step_ms);
  }
  return true;
}

}  // namespace tollgate::test
