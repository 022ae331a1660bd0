#include "common/sql/testing/power_cut_vfs.h"

#include <sqlite3.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <new>
#include <thread>

namespace tollgate::sql::testing {
namespace {

constexpr int64_t kSector = 512;

void Apply(const PowerCutVfs::Write& write, std::string& content) {
  if (write.truncate) return content.resize(static_cast<size_t>(write.offset));
  const size_t end = static_cast<size_t>(write.offset) + write.data.size();
  if (content.size() < end) content.resize(end);
  content.replace(static_cast<size_t>(write.offset), write.data.size(), write.data);
}

// --- SQLite's interface --------------------------------------------------------------------------

struct Tracked {
  std::string path;
  std::shared_ptr<PowerCutVfs::Inode> inode;  // null: a temporary file
};
struct File {
  sqlite3_file base;
  sqlite3_file* real;
  Tracked* tracked;
};
File& Of(sqlite3_file* file) { return *reinterpret_cast<File*>(file); }
sqlite3_file* Real(sqlite3_file* file) { return Of(file).real; }
sqlite3_vfs* RealVfs(sqlite3_vfs* vfs) { return static_cast<sqlite3_vfs*>(vfs->pAppData); }

int Close(sqlite3_file* file) {
  const int code = Real(file)->pMethods->xClose(Real(file));
  delete Of(file).tracked;
  return code;
}
int Read(sqlite3_file* file, void* into, int size, sqlite3_int64 offset) {
  return Real(file)->pMethods->xRead(Real(file), into, size, offset);
}
int WriteTo(sqlite3_file* file, const void* data, int size, sqlite3_int64 offset) {
  const Tracked& tracked = *Of(file).tracked;
  if (tracked.inode) {
    PowerCutVfs::Get().OnWrite(tracked.path, *tracked.inode,
                               {static_cast<const char*>(data), static_cast<size_t>(size)}, offset);
  }
  return Real(file)->pMethods->xWrite(Real(file), data, size, offset);
}
int Truncate(sqlite3_file* file, sqlite3_int64 size) {
  if (auto& inode = Of(file).tracked->inode) PowerCutVfs::Get().OnTruncate(*inode, size);
  return Real(file)->pMethods->xTruncate(Real(file), size);
}
int Sync(sqlite3_file* file, int) {
  const Tracked& tracked = *Of(file).tracked;
  if (!tracked.inode) return SQLITE_OK;
  return PowerCutVfs::Get().OnSync(tracked.path, *tracked.inode) ? SQLITE_OK : SQLITE_IOERR_FSYNC;
}
int FileSize(sqlite3_file* file, sqlite3_int64* size) {
  return Real(file)->pMethods->xFileSize(Real(file), size);
}
int Lock(sqlite3_file* file, int kind) { return Real(file)->pMethods->xLock(Real(file), kind); }
int Unlock(sqlite3_file* file, int kind) { return Real(file)->pMethods->xUnlock(Real(file), kind); }
int CheckReservedLock(sqlite3_file* file, int* out) {
  return Real(file)->pMethods->xCheckReservedLock(Real(file), out);
}
int FileControl(sqlite3_file* file, int op, void* argument) {
  return Real(file)->pMethods->xFileControl(Real(file), op, argument);
}
int SectorSize(sqlite3_file* file) { return Real(file)->pMethods->xSectorSize(Real(file)); }
int Characteristics(sqlite3_file* file) {
  return Real(file)->pMethods->xDeviceCharacteristics(Real(file));
}
int ShmMap(sqlite3_file* file, int page, int size, int extend, void volatile** out) {
  return Real(file)->pMethods->xShmMap(Real(file), page, size, extend, out);
}
int ShmLock(sqlite3_file* file, int offset, int n, int flags) {
  return Real(file)->pMethods->xShmLock(Real(file), offset, n, flags);
}
void ShmBarrier(sqlite3_file* file) { Real(file)->pMethods->xShmBarrier(Real(file)); }
int ShmUnmap(sqlite3_file* file, int remove) {
  return Real(file)->pMethods->xShmUnmap(Real(file), remove);
}

constexpr sqlite3_io_methods kMethods = {2,
                                         Close,
                                         Read,
                                         WriteTo,
                                         Truncate,
                                         Sync,
                                         FileSize,
                                         Lock,
                                         Unlock,
                                         CheckReservedLock,
                                         FileControl,
                                         SectorSize,
                                         Characteristics,
                                         ShmMap,
                                         ShmLock,
                                         ShmBarrier,
                                         ShmUnmap,
                                         nullptr,
                                         nullptr};

int Open(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  File& own = Of(file);
  own.real = reinterpret_cast<sqlite3_file*>(&own + 1);
  const bool tracked =
      name != nullptr &&
      (flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL)) != 0;
  own.base.pMethods = nullptr;
  auto inode = tracked ? PowerCutVfs::Get().OnOpen(name) : nullptr;
  const int code = RealVfs(vfs)->xOpen(RealVfs(vfs), name, own.real, flags, out_flags);
  if (code != SQLITE_OK) return code;
  own.tracked = new Tracked{name != nullptr ? name : "", std::move(inode)};
  own.base.pMethods = &kMethods;
  return SQLITE_OK;
}
int Delete(sqlite3_vfs* vfs, const char* name, int sync_folder) {
  PowerCutVfs::Get().OnDelete(name, sync_folder != 0);
  return RealVfs(vfs)->xDelete(RealVfs(vfs), name, 0);
}

void Register() {
  sqlite3_vfs* real = sqlite3_vfs_find(nullptr);
  static sqlite3_vfs vfs = *real;  // functions that are not replaced need no file of ours
  vfs.zName = "power-cut";
  vfs.pAppData = real;
  vfs.szOsFile = static_cast<int>(sizeof(File)) + real->szOsFile;
  vfs.pNext = nullptr;
  vfs.xOpen = Open;
  vfs.xDelete = Delete;
  vfs.xAccess = [](sqlite3_vfs* own, const char* name, int flags, int* out) {
    return RealVfs(own)->xAccess(RealVfs(own), name, flags, out);
  };
  vfs.xFullPathname = [](sqlite3_vfs* own, const char* name, int size, char* out) {
    return RealVfs(own)->xFullPathname(RealVfs(own), name, size, out);
  };
  if (sqlite3_vfs_register(&vfs, 1) != SQLITE_OK) std::abort();
}

}  // namespace

PowerCutVfs& PowerCutVfs::Get() {
  static PowerCutVfs* only = [] {
    Register();
    return new PowerCutVfs();
  }();
  return *only;
}

void PowerCutVfs::CutAfter(int64_t events, uint64_t seed) {
  const std::lock_guard lock(mutex_);
  random_.seed(seed);
  left_ = events;
  cut_ = false;
  image_.clear();
}

bool PowerCutVfs::cut() const {
  const std::lock_guard lock(mutex_);
  return cut_;
}

void PowerCutVfs::UnlessCut(const std::function<void()>& record) {
  const std::lock_guard lock(mutex_);
  if (!cut_) record();
}

PowerCutVfs::Image PowerCutVfs::TakeImage() {
  const std::lock_guard lock(mutex_);
  return std::move(image_);
}

void PowerCutVfs::Reset() {
  const std::lock_guard lock(mutex_);
  files_.clear();
  deleted_.clear();
  left_ = -1;
  cut_ = false;
}

void PowerCutVfs::FailSyncsOf(std::string suffix) {
  const std::lock_guard lock(mutex_);
  failing_ = std::move(suffix);
}

int64_t PowerCutVfs::opens_of(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  const auto found = opens_.find(path);
  return found == opens_.end() ? 0 : found->second;
}

int64_t PowerCutVfs::writes_of(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  const auto found = writes_.find(path);
  return found == writes_.end() ? 0 : found->second;
}

int64_t PowerCutVfs::syncs_of(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  const auto found = syncs_.find(path);
  return found == syncs_.end() ? 0 : found->second;
}

std::shared_ptr<PowerCutVfs::Inode> PowerCutVfs::OnOpen(const std::string& path) {
  const std::lock_guard lock(mutex_);
  ++opens_[path];
  std::shared_ptr<Inode>& inode = files_[path];
  if (inode) return inode;
  inode = std::make_shared<Inode>();
  std::ifstream file(path, std::ios::binary);
  if (file) {  // it existed before the test's processes
    inode->durable.assign(std::istreambuf_iterator<char>(file), {});
    inode->name_is_durable = true;
  }
  return inode;
}

void PowerCutVfs::OnWrite(const std::string& path, Inode& inode, std::string_view data,
                          int64_t offset) {
  const std::lock_guard lock(mutex_);
  ++writes_[path];
  Step();
  inode.pending.push_back({++number_, false, offset, std::string(data)});
}

void PowerCutVfs::OnTruncate(Inode& inode, int64_t size) {
  const std::lock_guard lock(mutex_);
  Step();
  inode.pending.push_back({++number_, true, size, {}});
}

bool PowerCutVfs::OnSync(const std::string& path, Inode& inode) {
  int64_t until = 0, moment_us = 0;
  {
    const std::lock_guard lock(mutex_);
    Step();
    ++syncs_[path];
    if (!failing_.empty() && path.ends_with(failing_)) {
      inode.pending.clear();
      return false;
    }
    until = number_;
    moment_us = Random(200);
  }
  // Later writes are not covered by this sync.
  std::this_thread::sleep_for(std::chrono::microseconds(moment_us));
  const std::lock_guard lock(mutex_);
  while (!inode.pending.empty() && inode.pending.front().number <= until) {
    Apply(inode.pending.front(), inode.durable);
    inode.pending.pop_front();
  }
  inode.name_is_durable = true;
  return true;
}

void PowerCutVfs::OnDelete(const std::string& path, bool durable) {
  const std::lock_guard lock(mutex_);
  const auto found = files_.find(path);
  if (found == files_.end()) return;
  if (!durable && found->second->name_is_durable) deleted_[path] = found->second;
  if (durable) deleted_.erase(path);
  files_.erase(found);
}

void PowerCutVfs::Step() {
  if (left_ > 0 && --left_ == 0) Cut();
}

void PowerCutVfs::Cut() {
  cut_ = true;
  for (const auto& [path, inode] : deleted_) {
    if (Random(2) == 0) image_[path] = AfterCut(*inode);
  }
  for (const auto& [path, inode] : files_) {
    if (inode->name_is_durable || Random(2) == 0) image_[path] = AfterCut(*inode);
  }
}

std::string PowerCutVfs::AfterCut(const Inode& inode) {
  std::string content = inode.durable;
  const int64_t mode = Random(4);  // nothing, a prefix, any part, everything
  const auto count = static_cast<int64_t>(inode.pending.size());
  const int64_t kept = mode == 0 ? 0 : mode == 1 ? Random(count + 1) : count;
  for (int64_t i = 0; i < kept; ++i) {
    Write write = inode.pending[static_cast<size_t>(i)];
    if (mode == 2 && Random(2) == 0) continue;
    const bool torn = !write.truncate && (mode == 2 ? Random(4) == 0 : mode == 1 && i + 1 == kept);
    if (!torn) {
      Apply(write, content);
      continue;
    }
    // Keeps some of its sectors.
    const auto size = static_cast<int64_t>(write.data.size());
    for (int64_t at = 0; at < size; at += kSector) {
      if (Random(2) == 0) continue;
      const auto part = static_cast<size_t>(std::min(kSector, size - at));
      Apply({0, false, write.offset + at, write.data.substr(static_cast<size_t>(at), part)},
            content);
    }
  }
  return content;
}

}  // namespace tollgate::sql::testing
