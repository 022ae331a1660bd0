#include "common/observability/log.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <memory>

#include "common/base/clock.h"
#include "common/observability/log_format.h"

namespace tollgate::log {
namespace {

std::atomic<Level> g_level{Level::kInfo};

// Every record reads it. A shared pointer makes SetProcessName safe at any time.
std::atomic<std::shared_ptr<const std::string>>& ProcessName() {
  static std::atomic<std::shared_ptr<const std::string>> name{
      std::make_shared<const std::string>("tollgate")};
  return name;
}

}  // namespace

void SetLevel(Level level) { g_level.store(level, std::memory_order_relaxed); }

bool Enabled(Level level) { return level >= g_level.load(std::memory_order_relaxed); }

void SetProcessName(std::string name) {
  ProcessName().store(std::make_shared<const std::string>(std::move(name)));
}

void Write(Level level, std::string_view message, std::initializer_list<Field> fields) {
  const std::string line =
      FormatLine(level, SystemClock::Get().WallUs(), *ProcessName().load(), message, fields);
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
