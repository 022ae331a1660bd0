#include "common/sql/sqlite_log_sync.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

#include "common/observability/log.h"
#include "common/sql/sql.h"

namespace tollgate::sql {

void AbortOnFailedFlush(const std::string& file, const char* reason) {
  log::Error("database flush failed; aborting, the next start recovers from the files",
             {{"file", file}, {"reason", reason}});
  std::abort();
}

namespace {

// Syncs the log through a connection that is used for nothing else. It keeps one descriptor open
// from before the first commit to the end: the kernel reports a failed write once to each open
// descriptor, and one opened later may miss it. The connection also keeps SQLite from deleting the
// log as long as it is open.
class SqliteLogSync : public LogSync {
 public:
  explicit SqliteLogSync(std::string path) : path_(std::move(path)) { (void)Open(); }

  void Sync() override {
    if (log_ == nullptr && !Open()) {
      AbortOnFailedFlush(path_, db_ ? sqlite3_errmsg(db_.get()) : "the log cannot be opened");
    }
    const int code =
        log_->pMethods->xSync(log_, SQLITE_SYNC_NORMAL | static_cast<int>(SQLITE_SYNC_DATAONLY));
    if (code != SQLITE_OK) AbortOnFailedFlush(path_, sqlite3_errstr(code));
  }

 private:
  bool Open() {
    sqlite3* raw = nullptr;
    const int opened =
        sqlite3_open_v2(path_.c_str(), &raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
    db_.reset(raw);
    if (opened != SQLITE_OK) return false;
    sqlite3_busy_timeout(raw, 5000);
    // Reading opens the log.
    if (sqlite3_exec(raw,
                     "PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0; "
                     "SELECT count(*) FROM sqlite_schema;",
                     nullptr, nullptr, nullptr) != SQLITE_OK ||
        sqlite3_file_control(raw, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log_) != SQLITE_OK ||
        log_ == nullptr || log_->pMethods == nullptr || !SyncFolder()) {
      log_ = nullptr;
      return false;
    }
    return true;
  }
  // The name of the log must be durable, too.
  bool SyncFolder() const {
    const size_t slash = path_.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : path_.substr(0, slash + 1);
    const int file = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file < 0) return false;
    const bool synced = fsync(file) == 0;
    close(file);
    return synced;
  }

  const std::string path_;
  DbPtr db_;
  sqlite3_file* log_ = nullptr;  // owned by db_
};

}  // namespace

std::unique_ptr<LogSync> Database::MakeLogSync() const {
  if (dialect_ != Dialect::kSqlite || !options_.deferred_sync) return nullptr;
  return std::make_unique<SqliteLogSync>(target_);
}

}  // namespace tollgate::sql
