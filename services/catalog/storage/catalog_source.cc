#include "services/catalog/storage/catalog_source.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "common/base/try.h"
#include "services/catalog/storage/catalog_reader.h"

namespace tollgate::catalog {
namespace {

constexpr int kPollsBetweenReads = 40;

BasicResult<std::string, std::string> ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  if (!file || file.bad()) {
    return Fail{path + ": cannot be read: " + std::strerror(errno)};
  }
  return std::move(text).str();
}

}  // namespace

CatalogSource::Signature CatalogSource::ReadSignature() const {
  struct stat status{};
  if (::stat(path_.c_str(), &status) != 0) return {};
  return {.modified_ns = status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec,
          .size = status.st_size,
          .inode = status.st_ino};
}

BasicResult<CatalogSource::SnapshotPtr, Problems> CatalogSource::Load() {
  // Read before the content, so that the next call notices a change during the read.
  loaded_ = seen_ = ReadSignature();
  auto text = ReadText(path_);
  if (!text) return Fail{Problems{text.error()}};
  const std::filesystem::path path(path_);
  TRY(auto built, ReadCatalog(*text, path.filename().string(),
                              path.has_parent_path() ? path.parent_path().string() : ".", brand_));
  if (built.ByteSizeLong() > kMaxSnapshotBytes) {
    return Fail{Problems{path_ + ": more than " + std::to_string(kMaxSnapshotBytes) +
                         " bytes of models and engines"}};
  }
  if (current_ && current_->digest() == built.digest()) return current_;
  // Uses the file's modification time, so that replicas and restarts agree on the version. Always
  // higher than the previous version.
  const int64_t version =
      std::max(loaded_.modified_ns / 1000, current_ ? current_->version() + 1 : 1);
  auto snapshot = std::make_shared<v1::Snapshot>(std::move(built));
  SetVersion(*snapshot, version);
  current_ = std::move(snapshot);
  return current_;
}

CatalogSource::Change CatalogSource::Poll(Problems& problems) {
  const Signature now = ReadSignature();
  const bool stable = now == std::exchange(seen_, now);
  const bool due = ++polls_ >= kPollsBetweenReads;
  if (!stable || (now == loaded_ && !due)) return Change::kNone;
  polls_ = 0;
  const SnapshotPtr before = current_;
  if (auto loaded = Load(); !loaded) {
    if (loaded.error() == reported_) return Change::kNone;
    reported_ = problems = loaded.error();
    return Change::kInvalid;
  }
  reported_.clear();
  return current_ == before ? Change::kNone : Change::kNew;
}

}  // namespace tollgate::catalog
