#include "tests/support/process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace tollgate::test {
namespace fs = std::filesystem;

namespace {

// Copies the files that the processes of a folder wrote to TOLLGATE_TEST_LOGS, where they are
// searched for secrets after all tests (tests/secrets): logs, metrics, and core files, which must
// not exist.
void KeepLogs(const std::string& folder) {
  const char* to = std::getenv("TOLLGATE_TEST_LOGS");
  std::error_code ignored;
  if (to == nullptr) return;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename();
    if (!name.ends_with(".log") && !name.ends_with(".metrics") && !name.starts_with("core")) {
      continue;
    }
    fs::copy_file(entry.path(), fs::path(to) / (fs::path(folder).filename().string() + "-" + name),
                  ignored);
  }
}

}  // namespace

TempDir::TempDir() {
  std::string pattern = (fs::temp_directory_path() / "tollgate-test-XXXXXX").string();
  if (!mkdtemp(pattern.data())) std::abort();
  path_ = pattern;
}

TempDir::~TempDir() {
  KeepLogs(path_);
  if (std::getenv("TOLLGATE_KEEP_TMP")) {
    std::fprintf(stderr, "kept %s\n", path_.c_str());
    return;
  }
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

Process::Process(std::string name, std::vector<std::string> command, std::string log_file)
    : name_(std::move(name)), command_(std::move(command)), log_file_(std::move(log_file)) {}

Process::~Process() { Kill(); }

bool Process::Start() {
  if (Running()) return true;
  std::vector<char*> arguments;
  for (std::string& part : command_) arguments.push_back(part.data());
  arguments.push_back(nullptr);
  const int log = open(log_file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(126);  // the parent exited in between
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    rlimit files{};
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
      files.rlim_cur = files.rlim_max;
      setrlimit(RLIMIT_NOFILE, &files);
    }
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  if (log >= 0) close(log);
  return pid_ > 0;
}

void Process::Collected(int status) {
  exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  dumped_core_ = WIFSIGNALED(status) && WCOREDUMP(status);
  pid_ = -1;
}

bool Process::Running() {
  if (pid_ <= 0) return false;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) == 0) return true;
  Collected(status);
  return false;
}

void Process::Signal(int signal) {
  if (Running()) kill(pid_, signal);
}

void Process::Kill() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  int status = 0;
  waitpid(pid_, &status, 0);
  Collected(status);
}

int Process::Terminate(int64_t timeout_ms) {
  if (!Running()) return exit_code_;
  kill(pid_, SIGTERM);
  if (!Within([this] { return !Running(); }, timeout_ms)) Kill();
  return exit_code_;
}

std::string Process::Crash() {
  constexpr size_t kShown = 8000;
  const std::string log = ReadFile(log_file_);
  for (const char* mark : {"ERROR: AddressSanitizer", "ERROR: LeakSanitizer",
                           ": runtime error: ", "WARNING: ThreadSanitizer"}) {
    const size_t at = log.find(mark);
    if (at == std::string::npos) continue;
    const size_t line = log.rfind('\n', at) + 1;  // npos + 1 is the beginning
    return name_ + ": " + log.substr(line, kShown) + "\n";
  }
  if (Running() || exit_code_ == 0 || exit_code_ == -SIGKILL) return "";
  return name_ + " ended with " + std::to_string(exit_code_) + "\n" + LogTail() + "\n";
}

std::string Process::LogTail(size_t bytes) const {
  const std::string log = ReadFile(log_file_);
  return log.size() <= bytes ? log : log.substr(log.size() - bytes);
}

std::string BinaryPath(const std::string& name) {
  const char* folder = std::getenv("TOLLGATE_BIN");
  return std::string(folder ? folder : "build/dev/bin") + "/" + name;
}

bool BinaryExists(const std::string& name) { return access(BinaryPath(name).c_str(), X_OK) == 0; }

void WriteFile(const std::string& path, const std::string& text) {
  const std::string half = path + ".new";
  {
    std::ofstream file(half, std::ios::binary);
    file << text;
  }
  std::rename(half.c_str(), path.c_str());
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void SleepMs(int64_t ms) {
  const timespec wait{ms / 1000, ms % 1000 * 1'000'000};
  nanosleep(&wait, nullptr);
}

}  // namespace tollgate::test
