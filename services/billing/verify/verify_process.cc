#include "services/billing/verify/verify_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <optional>

#include "common/json/json.h"

namespace tollgate::billing {
namespace {

constexpr int kProgressMs = 250;
// A process that was asked to end has 5 seconds.
constexpr int kStopRounds = 20;
// A line has at most all violations of a report.
constexpr size_t kMostLineBytes = size_t{1} << 20;

std::vector<char*> Pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Starts the process with its output in a pipe. Returns its id, or 0 and why.
std::pair<pid_t, std::string> Spawn(std::vector<std::string> words, const std::string& database_url,
                                    int output) {
  std::vector<std::string> variables;
  const std::string name = std::string(kLedgerDatabaseVariable) + "=";
  for (char** one = environ; *one != nullptr; ++one) {
    if (!std::string_view(*one).starts_with(name)) variables.emplace_back(*one);
  }
  variables.push_back(name + database_url);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, output, STDERR_FILENO);
  // The threads of a server block signals that end a process.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t pid = 0;
  const int failed = posix_spawnp(&pid, words.front().c_str(), &files, &attributes,
                                  Pointers(words).data(), Pointers(variables).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (failed == 0) return {pid, ""};
  return {0, "cannot start " + words.front() + ": " + std::strerror(failed)};
}

// What the process prints: lines of progress, errors, and the result.
class Output {
 public:
  void Add(std::string_view bytes) {
    rest_ += bytes;
    for (size_t end = 0; (end = rest_.find('\n')) != std::string::npos;) {
      Line(rest_.substr(0, end));
      rest_.erase(0, end + 1);
    }
    if (rest_.size() > kMostLineBytes) rest_.clear();
  }

  const VerifyReport& progress() const { return progress_; }
  const std::optional<VerifyReport>& result() const { return result_; }
  const std::string& error() const { return error_; }

 private:
  void Line(const std::string& line) {
    if (line.starts_with('{')) {
      result_ = ReadResult(line);
      return;
    }
    long long entries = 0;
    long long holds = 0;
    long long workspaces = 0;
    if (std::sscanf(line.c_str(), "verify: %lld entries, %lld holds, %lld workspaces", &entries,
                    &holds, &workspaces) == 3) {
      progress_.entries = entries;
      progress_.holds = holds;
      progress_.workspaces = workspaces;
    } else {
      error_ = line;
    }
  }

  static std::optional<VerifyReport> ReadResult(const std::string& line) {
    auto json = json::Document::Parse(line);
    if (!json.ok()) return std::nullopt;
    const json::Value root = json->root();
    VerifyReport report;
    report.workspaces = root.Find("workspaces").Integer().value_or(0);
    report.entries = root.Find("entries").Integer().value_or(0);
    report.holds = root.Find("holds").Integer().value_or(0);
    report.usage_records = root.Find("usage_records").Integer().value_or(0);
    report.commands = root.Find("commands").Integer().value_or(0);
    for (const json::Value violation : root.Find("violations")) {
      report.violations.push_back(violation.string());
    }
    return report;
  }

  std::string rest_;
  std::string error_;
  VerifyReport progress_;
  std::optional<VerifyReport> result_;
};

}  // namespace

BasicResult<VerifyReport, std::string> RunVerifyProcess(
    const std::vector<std::string>& words, const std::string& database_url,
    const std::function<bool(const VerifyReport&)>& progress) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Fail{std::string("cannot make a pipe")};
  const auto [pid, failed] = Spawn(words, database_url, ends[1]);
  ::close(ends[1]);
  if (pid == 0) {
    ::close(ends[0]);
    return Fail{failed};
  }
  Output output;
  bool stopped = false;
  int left = kStopRounds;
  for (bool open = true; open && left > 0;) {
    pollfd one{ends[0], POLLIN, 0};
    if (::poll(&one, 1, kProgressMs) > 0) {
      char bytes[4096];
      const ssize_t read = ::read(ends[0], bytes, sizeof bytes);
      open = read > 0;
      if (open) output.Add({bytes, static_cast<size_t>(read)});
    }
    if (stopped) --left;
    if (stopped || progress(output.progress())) continue;
    stopped = true;
    ::kill(pid, SIGTERM);
  }
  if (stopped) ::kill(pid, SIGKILL);
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (stopped) {
    VerifyReport report = output.progress();
    report.stopped = true;
    return report;
  }
  if (output.result()) return *output.result();
  return Fail{"the verification ended without a result: " + output.error()};
}

}  // namespace tollgate::billing
