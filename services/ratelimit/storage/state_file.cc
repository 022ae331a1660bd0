#include "services/ratelimit/storage/state_file.h"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

#include "common/observability/log.h"

namespace tollgate::ratelimit {
namespace {

constexpr auto kPeriod = std::chrono::seconds(1);

}  // namespace

StateFile::StateFile(std::string path, MemoryStore& store, const Clock& clock)
    : path_(std::move(path)), store_(store), clock_(clock) {}

StateFile::~StateFile() { Stop(); }

BasicResult<bool, std::string> StateFile::Load() {
  errno = 0;
  std::ifstream file(path_, std::ios::binary);
  if (!file) {
    if (errno == ENOENT) return false;
    return Fail{"cannot read ratelimit.state_file " + path_ + ": " + std::strerror(errno)};
  }
  std::stringstream bytes;
  bytes << file.rdbuf();
  v1::SavedState state;
  if (!state.ParseFromString(bytes.str())) {
    return Fail{"ratelimit.state_file " + path_ +
                " is damaged; remove it, which grants each key one more burst"};
  }
  store_.Restore(state, clock_.WallUs() - state.at_us());
  return true;
}

BasicResult<bool, std::string> StateFile::Save() {
  v1::SavedState state = store_.Save();
  state.set_at_us(clock_.WallUs());
  const std::string temporary = path_ + ".new";
  std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
  file << state.SerializeAsString();
  file.close();
  if (!file || std::rename(temporary.c_str(), path_.c_str()) != 0) {
    return Fail{"cannot write ratelimit.state_file " + path_ + ": " + std::strerror(errno)};
  }
  return true;
}

void StateFile::Start() {
  thread_.Start("rates-file", kPeriod, [this] {
    const auto saved = Save();
    if (!saved && !failed_) log::Error("rates cannot be saved", {{"reason", saved.error()}});
    failed_ = !saved.ok();
  });
}

void StateFile::Stop() {
  if (!thread_.running()) return;
  thread_.Stop();
  const auto saved = Save();
  if (!saved) log::Error("rates cannot be saved", {{"reason", saved.error()}});
}

}  // namespace tollgate::ratelimit
