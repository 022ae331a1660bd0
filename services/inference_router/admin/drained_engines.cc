#include "services/inference_router/admin/drained_engines.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "common/base/try.h"
#include "common/observability/log.h"
#include "services/inference_router/settlement/file_header.h"

namespace tollgate::inference_router {

Result<void> DrainedEngines::Open(const std::string& path) {
  const std::lock_guard lock(mutex_);
  path_ = path;
  std::error_code failed;
  if (!std::filesystem::exists(path, failed)) return {};
  std::ifstream file(path);
  if (!file) return Internal("cannot read " + path + ": " + std::strerror(errno));
  for (std::string id; std::getline(file, id);) {
    if (id.empty()) continue;
    log::Warn("the engine is drained: it gets no new requests until it is resumed",
              {{"engine", id}});
    ids_.insert(id);
  }
  return {};
}

Result<void> DrainedEngines::Set(const std::string& engine, bool drained) {
  const std::lock_guard writing(write_mutex_);
  std::set<std::string> changed = ids();
  if (drained) {
    changed.insert(engine);
  } else {
    changed.erase(engine);
  }
  if (changed == ids()) return {};
  TRY(Write(changed));
  const std::lock_guard lock(mutex_);
  ids_ = std::move(changed);
  return {};
}

void DrainedEngines::Mark(const RoutingTable& table, int64_t now_us) const {
  const std::lock_guard lock(mutex_);
  for (const EnginePointer& engine : table.engines()) {
    engine->SetDrained(ids_.contains(engine->id()), now_us);
  }
}

std::set<std::string> DrainedEngines::ids() const {
  const std::lock_guard lock(mutex_);
  return ids_;
}

Result<void> DrainedEngines::Write(const std::set<std::string>& ids) const {
  std::string text;
  for (const std::string& id : ids) text += id + "\n";
  const std::string next = path_ + ".new";
  const int file = ::open(next.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  bool written = file >= 0 && WriteFully(file, text) && ::fsync(file) == 0;
  const int failed = errno;
  if (file >= 0) ::close(file);
  written = written && ::rename(next.c_str(), path_.c_str()) == 0 && FlushFolderOf(path_);
  if (!written) return Internal("cannot write " + path_ + ": " + std::strerror(failed));
  return {};
}

}  // namespace tollgate::inference_router
