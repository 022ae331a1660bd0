#include <sqlite3.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "common/base/try.h"
#include "common/observability/log.h"
#include "common/sql/drivers.h"
#include "common/sql/sqlite_log_sync.h"
#include "common/sql/sqlite_log_writes.h"
#include "common/sql/statement_text.h"

namespace tollgate::sql {
namespace {

struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using StatementPtr = std::unique_ptr<sqlite3_stmt, Finalize>;

ErrorKind KindOf(int extended) {
  switch (extended) {
    case SQLITE_CONSTRAINT_UNIQUE:
    case SQLITE_CONSTRAINT_PRIMARYKEY:
    case SQLITE_CONSTRAINT_ROWID:
      return ErrorKind::kUnique;
    default:
      break;
  }
  switch (extended & 0xff) {
    case SQLITE_CONSTRAINT:
      return ErrorKind::kConstraint;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return ErrorKind::kRetry;
    // The file or its disk is unavailable, possibly for a while.
    case SQLITE_CANTOPEN:
    case SQLITE_IOERR:
    case SQLITE_FULL:
    case SQLITE_PROTOCOL:
      return ErrorKind::kConnection;
    default:
      return ErrorKind::kOther;
  }
}

// Whether a failed fsync caused the error. The kernel may have dropped unwritten pages, so a retry
// in this process is not safe (docs/design/ledger.md 6): the process aborts and recovers from the
// log at its next start.
bool IsFailedSync(int extended) {
  return extended == SQLITE_IOERR_FSYNC || extended == SQLITE_IOERR_DIR_FSYNC;
}

class SqliteRow : public Row {
 public:
  explicit SqliteRow(sqlite3_stmt* statement) : statement_(statement) {}
  bool IsNull(int column) const override {
    return sqlite3_column_type(statement_, column) == SQLITE_NULL;
  }
  int64_t Int(int column) const override { return sqlite3_column_int64(statement_, column); }
  std::string_view Bytes(int column) const override {
    const void* data = sqlite3_column_blob(statement_, column);
    const int size = sqlite3_column_bytes(statement_, column);
    return data ? std::string_view(static_cast<const char*>(data), size) : std::string_view();
  }

 private:
  sqlite3_stmt* statement_;
};

// SQLite creates the database with mode 0644, and its other files with the database's mode. Uses
// the path: closing a descriptor of the file here would release SQLite's locks (POSIX).
void RemoveAccessOfOthers(const std::string& path) {
  for (const char* suffix : {"", "-wal", "-shm"}) {
    const std::string file = path + suffix;
    struct stat info{};
    if (::stat(file.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    if ((info.st_mode & 077) != 0 && ::chmod(file.c_str(), 0600) != 0) {
      log::Warn("a database file is open to other users and its mode cannot be changed",
                {{"file", file}});
    }
  }
}

class SqliteConnection : public Connection {
 public:
  SqliteConnection(std::string path, const Database::Options& options)
      : path_(std::move(path)),
        busy_timeout_ms_(options.busy_timeout_ms),
        checkpoint_pages_(options.checkpoint_pages),
        deferred_sync_(options.deferred_sync) {}

  Dialect dialect() const override { return Dialect::kSqlite; }
  bool healthy() const override { return db_ != nullptr; }

  SqlResult<void> Reconnect() override {
    // Memory statistics would lock a mutex at each allocation, and they are not used. Has no effect
    // if SQLite was used before.
    [[maybe_unused]] static const int kConfigured = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    last_ = nullptr;
    assembled_.clear();
    statements_.clear();
    sqlite3* raw = nullptr;
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    const int rc = sqlite3_open_v2(path_.c_str(), &raw, flags, LogWritesVfs());
    db_.reset(raw);
    if (rc != SQLITE_OK) {
      SqlError error = MakeError("open");
      db_.reset();
      return Fail{std::move(error)};
    }
    RemoveAccessOfOthers(path_);
    sqlite3_extended_result_codes(raw, 1);
    sqlite3_busy_timeout(raw, busy_timeout_ms_);
    // Called about every 100 µs of work.
    sqlite3_progress_handler(
        raw, 20'000, [](void*) { return CancelScope::Cancelled() ? 1 : 0; }, nullptr);
    // FULL: a commit that has returned survives a power failure. NORMAL: only after the next sync
    // of the log (LogSync, or a checkpoint). SQLite's automatic checkpoint hides its errors: see
    // OnCommit. cache_spill=OFF keeps pages from being written before their commit: the log's
    // writes wait in memory until the commit frame (sqlite_log_writes.h), and those of a rollback
    // must not be written. EXTRA while a new file is switched to WAL: otherwise a power cut could
    // bring back the deleted rollback journal of the switch, and with it the empty file.
    auto set = ExecuteScript(
        std::string("PRAGMA synchronous=EXTRA; PRAGMA journal_mode=WAL; PRAGMA foreign_keys=ON; "
                    "PRAGMA synchronous=") +
        (deferred_sync_ ? "NORMAL;" : "FULL;") +
        "PRAGMA wal_autocheckpoint=0; PRAGMA cache_size=-65536; "
        "PRAGMA cache_spill=OFF; PRAGMA temp_store=MEMORY;");
    if (!set.ok()) {
      db_.reset();
      return set;
    }
    sqlite3_wal_hook(raw, &SqliteConnection::OnCommit, this);
    return set;
  }

  SqlResult<void> Query(std::string_view sql, std::span<const Param> params,
                        const RowFn& row) override {
    TRY(auto statement, Prepared(sql));
    return Run(statement, params, &row);
  }
  SqlResult<int64_t> Execute(std::string_view sql, std::span<const Param> params) override {
    TRY(auto statement, Prepared(sql));
    TRY(Run(statement, params, nullptr));
    return static_cast<int64_t>(sqlite3_changes64(db_.get()));
  }
  SqlResult<void> ExecuteScript(const std::string& script) override {
    if (!db_) return Fail{NotOpen()};
    if (sqlite3_exec(db_.get(), script.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
      return Fail{MakeError("script")};
    }
    return {};
  }

  // Runs the statement once for each row or key: there are no round trips to save.
  SqlResult<int64_t> ExecuteRows(std::string_view head, int columns, std::span<const Param> cells,
                                 std::string_view tail) override {
    TRY(auto statement, Assembled(head, columns, {}, tail));
    int64_t changed = 0;
    for (; !cells.empty(); cells = cells.subspan(columns)) {
      TRY(Run(statement, cells.first(columns), nullptr));
      changed += sqlite3_changes64(db_.get());
    }
    return changed;
  }
  SqlResult<void> QueryKeys(std::string_view head, std::span<const KeyColumn> columns,
                            std::span<const Param> keys, std::string_view tail,
                            const RowFn& row) override {
    TRY(auto statement, Assembled(head, 0, columns, tail));
    for (; !keys.empty(); keys = keys.subspan(columns.size())) {
      TRY(Run(statement, keys.first(columns.size()), &row));
    }
    return {};
  }

  SqlResult<void> Begin(TxMode mode) override {
    return Plain(mode == TxMode::kWrite ? "BEGIN IMMEDIATE" : "BEGIN");
  }
  SqlResult<void> Commit() override {
    auto committed = Plain("COMMIT");
    if (!committed.ok()) Rollback();
    return committed;
  }
  void Rollback() override {
    if (db_ && !sqlite3_get_autocommit(db_.get())) (void)Plain("ROLLBACK");
  }

 private:
  // Called after each commit has released its lock. Copies the log back when it is large enough.
  // Other threads must not do it: only between two transactions can the whole log be copied, so
  // that it restarts from its beginning.
  static int OnCommit(void* self, sqlite3* db, const char* name, int pages) {
    const auto& connection = *static_cast<SqliteConnection*>(self);
    if (pages < connection.checkpoint_pages_) return SQLITE_OK;
    if (sqlite3_wal_checkpoint_v2(db, name, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr) ==
        SQLITE_OK) {
      return SQLITE_OK;
    }
    const int code = sqlite3_extended_errcode(db);
    if (IsFailedSync(code)) AbortOnFailedFlush(connection.path_, sqlite3_errmsg(db));
    // Readers or a full disk may prevent it. Nothing is lost, and the next commit tries again.
    if ((code & 0xff) != SQLITE_BUSY) {
      log::Warn("the log of a database cannot be copied back and grows",
                {{"file", connection.path_}, {"error", sqlite3_errmsg(db)}});
    }
    return SQLITE_OK;
  }

  SqlError NotOpen() const { return {ErrorKind::kConnection, "sqlite: the file is not open"}; }
  SqlError MakeError(std::string_view what) const {
    const int code = db_ ? sqlite3_extended_errcode(db_.get()) : SQLITE_CANTOPEN;
    if (IsFailedSync(code)) AbortOnFailedFlush(path_, sqlite3_errstr(code));
    return {KindOf(code), "sqlite: " + std::string(what) + ": " +
                              (db_ ? sqlite3_errmsg(db_.get()) : "out of memory") + " (" +
                              std::to_string(code) + ")"};
  }

  SqlResult<void> Plain(std::string_view sql) {
    TRY(auto statement, Prepared(sql));
    return Run(statement, {}, nullptr);
  }

  SqlResult<sqlite3_stmt*> Prepared(std::string_view sql) {
    if (!db_) return Fail{NotOpen()};
    // Many rows are written in sequence with one statement.
    if (last_ != nullptr && last_->first == sql) return last_->second.get();
    const auto found = statements_.find(sql);
    if (found != statements_.end()) {
      last_ = &*found;
      return found->second.get();
    }
    std::string_view text = sql;
    constexpr std::string_view kLock =
        "FOR UPDATE";  // not needed: BEGIN IMMEDIATE locks the database
    if (text.ends_with(kLock)) text.remove_suffix(kLock.size());
    sqlite3_stmt* raw = nullptr;
    if (sqlite3_prepare_v3(db_.get(), text.data(), static_cast<int>(text.size()),
                           SQLITE_PREPARE_PERSISTENT, &raw, nullptr) != SQLITE_OK) {
      return Fail{MakeError("prepare")};
    }
    statements_.emplace(std::string(sql), StatementPtr(raw));
    return raw;
  }

  // Returns the statement "head ($1, …) tail" with this many columns, or "head key = $1 AND …
  // tail". Callers pass the same texts at the same addresses repeatedly: the statement is found by
  // these addresses, without building and hashing its text.
  SqlResult<sqlite3_stmt*> Assembled(std::string_view head, int columns,
                                     std::span<const KeyColumn> key, std::string_view tail) {
    Parts& parts = assembled_[{head.data(), key.data(), tail.data()}];
    if (parts.statement != nullptr && parts.Match(head, columns, key, tail)) return parts.statement;
    std::string text(head);
    if (key.empty()) AppendTuples(text, 1, columns);
    AppendEquals(text, key);
    text += ' ';
    text += tail;
    auto statement = Prepared(text);
    if (!statement.ok()) return statement;
    parts = {std::string(head), columns, {}, std::string(tail), *statement};
    for (const KeyColumn& column : key) parts.key.emplace_back(column.name);
    // Bounds the cache: texts in memory that changes would add more and more addresses.
    if (assembled_.size() > kMostAssembled) assembled_.clear();
    return statement;
  }

  SqlResult<void> Run(sqlite3_stmt* statement, std::span<const Param> params, const RowFn* row) {
    for (size_t i = 0; i < params.size(); ++i) {
      const Param& param = params[i];
      const int place = static_cast<int>(i) + 1;
      const std::string_view bytes = param.bytes();
      const char* data = bytes.data() ? bytes.data() : "";  // a null pointer would bind NULL
      const int size = static_cast<int>(bytes.size());
      switch (param.kind()) {
        case Param::Kind::kNull:
          sqlite3_bind_null(statement, place);
          break;
        case Param::Kind::kInt:
          sqlite3_bind_int64(statement, place, param.int_value());
          break;
        case Param::Kind::kText:
          sqlite3_bind_text(statement, place, data, size, SQLITE_STATIC);
          break;
        case Param::Kind::kBlob:
          sqlite3_bind_blob(statement, place, data, size, SQLITE_STATIC);
          break;
      }
    }
    const SqliteRow current(statement);
    int rc;
    while ((rc = sqlite3_step(statement)) == SQLITE_ROW) {
      if (row) (*row)(current);
    }
    SqlResult<void> result;
    if (rc != SQLITE_DONE) result = Fail{MakeError("step")};
    sqlite3_reset(statement);
    return result;
  }

  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  const std::string path_;
  const int busy_timeout_ms_;
  const int checkpoint_pages_;
  const bool deferred_sync_;
  DbPtr db_;
  // Declared after db_, so that statements are finalized before the file is closed.
  using Statements = std::unordered_map<std::string, StatementPtr, Hash, std::equal_to<>>;
  Statements statements_;
  const Statements::value_type* last_ = nullptr;  // the last used one
  struct Parts {
    std::string head;
    int columns = 0;
    std::vector<std::string> key;
    std::string tail;
    sqlite3_stmt* statement = nullptr;  // owned by statements_

    bool Match(std::string_view other_head, int other_columns, std::span<const KeyColumn> other_key,
               std::string_view other_tail) const {
      return head == other_head && columns == other_columns && tail == other_tail &&
             std::equal(key.begin(), key.end(), other_key.begin(), other_key.end(),
                        [](const std::string& name, const KeyColumn& column) {
                          return name == column.name;
                        });
    }
  };
  static constexpr size_t kMostAssembled = 256;
  std::map<std::tuple<const void*, const void*, const void*>, Parts> assembled_;
};

}  // namespace

SqlResult<std::unique_ptr<Connection>> ConnectSqlite(const std::string& path,
                                                     const Database::Options& options) {
  auto connection = std::make_unique<SqliteConnection>(path, options);
  TRY(connection->Reconnect());
  return std::unique_ptr<Connection>(std::move(connection));
}

}  // namespace tollgate::sql
