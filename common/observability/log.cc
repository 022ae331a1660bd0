#include "common/observability/log.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <memory>
#include <utility>

#include "common/base/clock.h"
#include "common/observability/line_writer.h"
#include "common/observability/log_format.h"
#include "common/observability/metrics.h"

namespace tollgate::log {
namespace {

std::atomic<Level> g_level{Level::kInfo};

// Read for every record. A shared pointer makes SetProcessName safe at any time.
std::atomic<std::shared_ptr<const std::string>>& ProcessName() {
  static std::atomic<std::shared_ptr<const std::string>> name{
      std::make_shared<const std::string>("tollgate")};
  return name;
}

std::string Line(Level level, std::string_view message, std::initializer_list<Field> fields) {
  return FormatLine(level, SystemClock::Get().WallUs(), *ProcessName().load(), message, fields);
}

// Longest wait for the reader of the last lines when the process ends.
constexpr int kStopMs = 3'000;
constexpr int kCrashFlushMs = 1'000;

std::atomic<LineWriter*> g_writer{nullptr};

// The last lines before a crash explain it, so they must not stay in the queue.
void OnCrash(int signal) {
  const int error = errno;
  if (LineWriter* writer = g_writer) writer->FlushInSignalHandler(kCrashFlushMs);
  errno = error;
  // The signal may come from another process, such as a watchdog, and is not repeated. raise blocks
  // until this handler returns.
  std::raise(signal);
}

void FlushOnCrash() {
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
    struct sigaction before{};
    // Sanitizers and debuggers have handlers of their own.
    if (sigaction(signal, nullptr, &before) != 0 || before.sa_handler != SIG_DFL) continue;
    struct sigaction action{};
    action.sa_handler = OnCrash;
    action.sa_flags = SA_RESETHAND;  // afterwards the signal has its default action
    sigaction(signal, &action, nullptr);
  }
}

}  // namespace

void SetLevel(Level level) { g_level.store(level, std::memory_order_relaxed); }

bool Enabled(Level level) { return level >= g_level.load(std::memory_order_relaxed); }

void SetProcessName(std::string name) {
  ProcessName().store(std::make_shared<const std::string>(std::move(name)));
}

void SetLegacyKeyPrefixes(std::vector<std::string> prefixes) {
  SetRedactedPrefixes(std::move(prefixes));
}

void StartWriter(size_t max_queued_bytes) {
  auto& dropped = metrics::Counter(
      "tollgate_log_lines_dropped_total",
      "Log lines that were not written because the reader of standard error was too slow.");
  LineWriter::Options options;
  options.fd = STDERR_FILENO;
  if (max_queued_bytes > 0) options.max_queued_bytes = max_queued_bytes;
  options.on_dropped = [&dropped](size_t lines) { dropped.Increment(static_cast<double>(lines)); };
  options.dropped_line = [](size_t lines) {
    return Line(Level::kWarn, "log lines dropped", {{"lines", lines}});
  };
  // Never deleted: other threads may log while the process exits.
  static auto& writers = *new std::vector<std::unique_ptr<LineWriter>>;
  writers.push_back(std::make_unique<LineWriter>(std::move(options)));
  g_writer = writers.back().get();
  FlushOnCrash();
}

bool StopWriter() {
  LineWriter* writer = g_writer;
  if (writer == nullptr) return true;
  if (!writer->Stop(kStopMs)) return false;
  g_writer = nullptr;
  return true;
}

void Flush(int timeout_ms) {
  if (LineWriter* writer = g_writer) writer->Flush(timeout_ms);
}

void Write(Level level, std::string_view message, std::initializer_list<Field> fields) {
  const std::string line = Line(level, message, fields);
  if (LineWriter* writer = g_writer) {
    writer->Put(line);
    return;
  }
  // One write(2) per record, so that lines of threads and processes that share the descriptor do
  // not interleave.
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // the log is the only place to report this
    rest.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace tollgate::log
