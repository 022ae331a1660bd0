#include "common/sql/sqlite_log_writes.h"

#include <sqlite3.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>

namespace tollgate::sql {
namespace {

// Limit of bytes that wait in memory. Together with the largest page it is below the 128 KiB that
// SQLite's Unix file system accepts in one write.
constexpr size_t kMostWaiting = 60 << 10;
// Size of the header of a frame in the log (https://www.sqlite.org/fileformat2.html, "The
// Write-Ahead Log"). The header of a commit frame has a second word that is not zero.
constexpr int kFrameHeaderBytes = 24;

struct FreeFile {
  void operator()(sqlite3_file* file) const {
    if (file->pMethods != nullptr) file->pMethods->xClose(file);
    sqlite3_free(file);
  }
};

// The log of one connection, layered over the real file.
class Log {
 public:
  explicit Log(std::unique_ptr<sqlite3_file, FreeFile> file) : file_(std::move(file)) {}

  int Write(const void* data, int bytes, int64_t offset) {
    if (offset != offset_ + static_cast<int64_t>(waiting_.size())) {
      if (const int rc = Flush(); rc != SQLITE_OK) return rc;
      offset_ = offset;
    }
    if (bytes == kFrameHeaderBytes) {
      const auto* header = static_cast<const unsigned char*>(data);
      commits_ = (header[4] | header[5] | header[6] | header[7]) != 0;
      waits_ = true;
    } else if (offset == 0) {
      waits_ = false;  // this is the header of the log
    }
    waiting_.append(static_cast<const char*>(data), static_cast<size_t>(bytes));
    // The header of the commit frame waits for its page. Anything that SQLite writes after that
    // (padding) does not wait.
    const bool header_of_commit = commits_ && bytes == kFrameHeaderBytes;
    if (waits_ && (!commits_ || header_of_commit) && waiting_.size() < kMostWaiting) {
      return SQLITE_OK;
    }
    return Flush();
  }
  // Writes the waiting bytes. Bytes that cannot be written are dropped: their transaction has
  // failed.
  int Flush() {
    if (waiting_.empty()) return SQLITE_OK;
    const int rc = file_->pMethods->xWrite(file_.get(), waiting_.data(),
                                           static_cast<int>(waiting_.size()), offset_);
    offset_ += static_cast<int64_t>(waiting_.size());
    waiting_.clear();
    return rc;
  }
  sqlite3_file* file() { return file_.get(); }

 private:
  const std::unique_ptr<sqlite3_file, FreeFile> file_;
  std::string waiting_;
  int64_t offset_ = -1;   // file offset of waiting_
  bool waits_ = false;    // frames are being written, not the log's header
  bool commits_ = false;  // the last frame is a commit frame
};

struct LogFile {
  sqlite3_file base;
  Log* log;
};

Log& LogOf(sqlite3_file* file) { return *reinterpret_cast<LogFile*>(file)->log; }

// Calls the real file after all waiting bytes have been written.
template <typename Call>
int AfterFlush(sqlite3_file* file, Call call) {
  Log& log = LogOf(file);
  if (const int rc = log.Flush(); rc != SQLITE_OK) return rc;
  sqlite3_file* real = log.file();
  return call(real->pMethods, real);
}

int Close(sqlite3_file* file) {
  const int rc = LogOf(file).Flush();
  delete &LogOf(file);
  file->pMethods = nullptr;
  return rc;
}
int Read(sqlite3_file* file, void* data, int bytes, sqlite3_int64 offset) {
  return AfterFlush(file, [&](const sqlite3_io_methods* methods, sqlite3_file* real) {
    return methods->xRead(real, data, bytes, offset);
  });
}
int Write(sqlite3_file* file, const void* data, int bytes, sqlite3_int64 offset) {
  return LogOf(file).Write(data, bytes, offset);
}
int Truncate(sqlite3_file* file, sqlite3_int64 size) {
  return AfterFlush(file, [&](const sqlite3_io_methods* methods, sqlite3_file* real) {
    return methods->xTruncate(real, size);
  });
}
int Sync(sqlite3_file* file, int flags) {
  return AfterFlush(file, [&](const sqlite3_io_methods* methods, sqlite3_file* real) {
    return methods->xSync(real, flags);
  });
}
int FileSize(sqlite3_file* file, sqlite3_int64* size) {
  return AfterFlush(file, [&](const sqlite3_io_methods* methods, sqlite3_file* real) {
    return methods->xFileSize(real, size);
  });
}
int Lock(sqlite3_file* file, int level) {
  sqlite3_file* real = LogOf(file).file();
  return real->pMethods->xLock(real, level);
}
int Unlock(sqlite3_file* file, int level) {
  sqlite3_file* real = LogOf(file).file();
  return real->pMethods->xUnlock(real, level);
}
int CheckReservedLock(sqlite3_file* file, int* reserved) {
  sqlite3_file* real = LogOf(file).file();
  return real->pMethods->xCheckReservedLock(real, reserved);
}
int FileControl(sqlite3_file* file, int operation, void* argument) {
  return AfterFlush(file, [&](const sqlite3_io_methods* methods, sqlite3_file* real) {
    return methods->xFileControl(real, operation, argument);
  });
}
int SectorSize(sqlite3_file* file) {
  sqlite3_file* real = LogOf(file).file();
  return real->pMethods->xSectorSize(real);
}
int DeviceCharacteristics(sqlite3_file* file) {
  sqlite3_file* real = LogOf(file).file();
  return real->pMethods->xDeviceCharacteristics(real);
}

const sqlite3_io_methods* Methods() {
  static const sqlite3_io_methods kMethods = [] {
    sqlite3_io_methods methods{};
    methods.iVersion = 1;
    methods.xClose = Close;
    methods.xRead = Read;
    methods.xWrite = Write;
    methods.xTruncate = Truncate;
    methods.xSync = Sync;
    methods.xFileSize = FileSize;
    methods.xLock = Lock;
    methods.xUnlock = Unlock;
    methods.xCheckReservedLock = CheckReservedLock;
    methods.xFileControl = FileControl;
    methods.xSectorSize = SectorSize;
    methods.xDeviceCharacteristics = DeviceCharacteristics;
    return methods;
  }();
  return &kMethods;
}

sqlite3_vfs* Real(sqlite3_vfs* vfs) { return static_cast<sqlite3_vfs*>(vfs->pAppData); }

int Open(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  sqlite3_vfs* real = Real(vfs);
  if ((flags & SQLITE_OPEN_WAL) == 0) return real->xOpen(real, name, file, flags, out_flags);
  file->pMethods = nullptr;
  auto* opened = static_cast<sqlite3_file*>(sqlite3_malloc(real->szOsFile));
  if (opened == nullptr) return SQLITE_NOMEM;
  std::memset(opened, 0, static_cast<size_t>(real->szOsFile));
  std::unique_ptr<sqlite3_file, FreeFile> owned(opened);
  if (const int rc = real->xOpen(real, name, opened, flags, out_flags); rc != SQLITE_OK) return rc;
  Log* log = new (std::nothrow) Log(std::move(owned));
  if (log == nullptr) return SQLITE_NOMEM;
  reinterpret_cast<LogFile*>(file)->log = log;
  file->pMethods = Methods();
  return SQLITE_OK;
}

}  // namespace

const char* LogWritesVfs() {
  static std::mutex mutex;
  static std::map<sqlite3_vfs*, sqlite3_vfs> registered;  // by the real one, which tests replace
  sqlite3_vfs* real = sqlite3_vfs_find(nullptr);
  if (real == nullptr) return nullptr;
  const std::lock_guard lock(mutex);
  const auto [at, is_new] = registered.try_emplace(real, *real);
  sqlite3_vfs& vfs = at->second;
  if (!is_new) return vfs.zName;
  const std::string name = std::string("tollgate-log-") + real->zName;
  vfs.zName = strdup(name.c_str());  // for the life of the process
  vfs.pNext = nullptr;
  vfs.szOsFile = std::max(real->szOsFile, static_cast<int>(sizeof(LogFile)));
  vfs.pAppData = real;
  vfs.xOpen = Open;
  // The other functions are those of the real file system, which do not use pAppData.
  vfs.xDelete = [](sqlite3_vfs* own, const char* path, int sync_folder) {
    return Real(own)->xDelete(Real(own), path, sync_folder);
  };
  vfs.xAccess = [](sqlite3_vfs* own, const char* path, int flags, int* out) {
    return Real(own)->xAccess(Real(own), path, flags, out);
  };
  vfs.xFullPathname = [](sqlite3_vfs* own, const char* path, int size, char* out) {
    return Real(own)->xFullPathname(Real(own), path, size, out);
  };
  if (sqlite3_vfs_register(&vfs, 0) == SQLITE_OK) return vfs.zName;
  registered.erase(at);
  return nullptr;
}

}  // namespace tollgate::sql
