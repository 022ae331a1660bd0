// SQL storage of a service: SQLite (sqlite:/path) or PostgreSQL (postgresql://…), one interface,
// one set of SQL texts. Every call blocks, so call only from a thread that the service owns for its
// storage, never from an event loop or a gRPC thread.
//
// Texts that work on both: placeholders are $1, $2, …; ON CONFLICT … DO UPDATE SET x = excluded.x;
// RETURNING; CAST(sum(x) AS BIGINT); a trailing FOR UPDATE, which SQLite does not need and never
// sees. Scripts of migrations may hold {int}, {text}, {blob} and {strict} (see Migration).
#pragma once

#include <concepts>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/result.h"
#include "common/error/error.h"

namespace tollgate::sql {

enum class ErrorKind : uint8_t {
  kUnique,         // a unique or primary key constraint refused the row
  kConstraint,     // another constraint did (CHECK, NOT NULL, foreign key)
  kRetry,          // serialization failure, deadlock or busy: run the whole transaction again
  kConnection,     // the database is away; nothing of this transaction was kept
  kCommitUnknown,  // the connection broke during COMMIT: it may or may not have happened
  kOther,          // a wrong text, a full disk, …: trying again does not help
};

struct SqlError {
  ErrorKind kind = ErrorKind::kOther;
  std::string message;  // for logs, holds no row values
  // Worth another attempt, on a new connection where needed. After kCommitUnknown the caller must
  // be able to recognize its own earlier attempt.
  bool retryable() const {
    return kind == ErrorKind::kRetry || kind == ErrorKind::kConnection ||
           kind == ErrorKind::kCommitUnknown;
  }
};

template <typename T>
using SqlResult = BasicResult<T, SqlError>;

// As an error of the catalog: kServiceUnavailable when retryable, else kServerError.
Error ToError(const SqlError& error);

// One value for a placeholder. Refers to its text: the text must outlive the call.
class Param {
 public:
  enum class Kind : uint8_t { kNull, kInt, kText, kBlob };

  Param(std::nullptr_t) {}  // NOLINT: implicit
  template <std::integral T>
  Param(T value) : kind_(Kind::kInt), int_(static_cast<int64_t>(value)) {}  // NOLINT
  Param(std::string_view text) : kind_(Kind::kText), bytes_(text) {}        // NOLINT
  Param(const std::string& text) : Param(std::string_view(text)) {}         // NOLINT
  Param(const char* text) : Param(std::string_view(text)) {}                // NOLINT
  Param(std::optional<int64_t> value)                                       // NOLINT
      : kind_(value ? Kind::kInt : Kind::kNull), int_(value.value_or(0)) {}
  static Param Blob(std::string_view bytes) {
    Param param(bytes);
    param.kind_ = Kind::kBlob;
    return param;
  }

  Kind kind() const { return kind_; }
  int64_t int_value() const { return int_; }
  std::string_view bytes() const { return bytes_; }

 private:
  Kind kind_ = Kind::kNull;
  int64_t int_ = 0;
  std::string_view bytes_;
};

// One row of a result. Lives during the callback only, and so do its views.
class Row {
 public:
  virtual ~Row() = default;
  virtual bool IsNull(int column) const = 0;
  virtual int64_t Int(int column) const = 0;             // 0 for NULL
  virtual std::string_view Bytes(int column) const = 0;  // text or blob; empty for NULL
  std::string Text(int column) const { return std::string(Bytes(column)); }
  std::optional<int64_t> OptionalInt(int column) const {
    if (IsNull(column)) return std::nullopt;
    return Int(column);
  }
};
using RowFn = std::function<void(const Row&)>;

enum class Dialect : uint8_t { kSqlite, kPostgres };
enum class TxMode : uint8_t {
  kWrite,  // SQLite: BEGIN IMMEDIATE. PostgreSQL: READ COMMITTED; lock rows with FOR UPDATE.
  kRead,   // one snapshot for all statements
};

// One connection; one thread at a time. Statements are prepared once per text and kept.
class Connection {
 public:
  virtual ~Connection() = default;

  virtual Dialect dialect() const = 0;
  // False once the connection is known to be lost; Reconnect makes it new.
  virtual bool healthy() const = 0;
  virtual SqlResult<void> Reconnect() = 0;

  // Calls row for each row of the result.
  virtual SqlResult<void> Query(std::string_view sql, std::span<const Param> params,
                                const RowFn& row) = 0;
  // Number of rows that were changed.
  virtual SqlResult<int64_t> Execute(std::string_view sql, std::span<const Param> params) = 0;
  // Several statements without parameters.
  virtual SqlResult<void> ExecuteScript(const std::string& script) = 0;

  virtual SqlResult<void> Begin(TxMode mode) = 0;
  virtual SqlResult<void> Commit() = 0;
  virtual void Rollback() = 0;

  SqlResult<void> Query(std::string_view sql, std::initializer_list<Param> params,
                        const RowFn& row) {
    return Query(sql, std::span<const Param>(params.begin(), params.size()), row);
  }
  SqlResult<int64_t> Execute(std::string_view sql, std::initializer_list<Param> params = {}) {
    return Execute(sql, std::span<const Param>(params.begin(), params.size()));
  }

  // Writes many rows: head "INSERT INTO t(a, b) VALUES", two columns, cells row by row, tail
  // "ON CONFLICT (a) DO UPDATE SET b = excluded.b" or "". No row may be there twice. Number of
  // changes.
  SqlResult<int64_t> ExecuteRows(std::string_view head, int columns, std::span<const Param> cells,
                                 std::string_view tail = "");
  // Reads rows by many keys: head "SELECT a, b FROM t WHERE a IN", tail "ORDER BY a FOR UPDATE".
  // Each row comes once if the keys are distinct; in the order of the keys if they are sorted and
  // tail says so.
  SqlResult<void> QueryIn(std::string_view head, std::span<const Param> keys, std::string_view tail,
                          const RowFn& row);

 private:
  std::string text_;  // scratch of the two functions above
};

// Rolls back unless committed.
class Transaction {
 public:
  static SqlResult<Transaction> Begin(Connection& connection, TxMode mode = TxMode::kWrite);
  Transaction(Transaction&& other) noexcept
      : connection_(std::exchange(other.connection_, nullptr)) {}
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction() {
    if (connection_) connection_->Rollback();
  }
  SqlResult<void> Commit() { return std::exchange(connection_, nullptr)->Commit(); }

 private:
  explicit Transaction(Connection& connection) : connection_(&connection) {}
  Connection* connection_;
};

// One step of a schema. Written once for both dialects with these words in it:
// {int} INTEGER or BIGINT, {text} TEXT (sorted by bytes), {blob} BLOB or BYTEA, {strict} after the
// closing parenthesis of CREATE TABLE. Instead of {strict}: {keyed} for tables that are looked up
// by their primary key only, {hot} for those of them whose rows change often.
struct Migration {
  int version = 0;  // from 1, without gaps
  std::string_view name;
  std::string_view script;
};
std::string ExpandScript(Dialect dialect, std::string_view script);

// Makes every commit before it durable, on any thread. A failed sync is final: what the file holds
// is unknown from then on, so the process stops (reliability.md 1.6, "fsync error").
class LogSync {
 public:
  explicit LogSync(std::string log_path) : log_path_(std::move(log_path)) {}
  virtual ~LogSync() = default;
  virtual void Sync();

 private:
  const std::string log_path_;
};

// A database with a pool of connections. Thread-safe.
class Database {
 public:
  struct Options {
    std::string url;
    int connections = 4;                // most that the pool keeps open
    int connect_timeout_ms = 2000;      // also the longest wait for a free connection
    int busy_timeout_ms = 5000;         // SQLite: waiting for another writer
    int statement_timeout_ms = 10'000;  // PostgreSQL
    // SQLite: a commit is in the log, and survives the death of the process, at once; it survives a
    // power cut once LogSync::Sync has returned. For callers that sync in a thread of their own.
    bool deferred_sync = false;
  };

  // Checks the URL only; the first connection is made by the first call that needs one.
  static SqlResult<std::unique_ptr<Database>> Open(Options options);

  Dialect dialect() const { return dialect_; }
  const Options& options() const { return options_; }

  // For a database with deferred_sync; null where every commit is durable by itself.
  std::unique_ptr<class LogSync> MakeLogSync() const;

  // A connection of one's own, outside the pool.
  SqlResult<std::unique_ptr<Connection>> Connect() const;

  // Borrows a connection from the pool until it is destroyed.
  class Lease {
   public:
    Lease(Database& database, std::unique_ptr<Connection> connection)
        : database_(&database), connection_(std::move(connection)) {}
    Lease(Lease&&) = default;
    Lease& operator=(Lease&&) = delete;
    ~Lease();
    Connection* operator->() { return connection_.get(); }
    Connection& operator*() { return *connection_; }

   private:
    Database* database_;
    std::unique_ptr<Connection> connection_;
  };
  SqlResult<Lease> Borrow();

  // Runs body in a transaction of its own and commits it, again from the start (at most three
  // times) when the database asks for that or the connection was lost before COMMIT.
  SqlResult<void> Transact(TxMode mode, const std::function<SqlResult<void>(Connection&)>& body);

  // Brings the component's part of the schema up to date. Safe when several processes start at
  // once.
  SqlResult<void> Migrate(std::string_view component, std::span<const Migration> migrations);

 private:
  Database(Options options, Dialect dialect, std::string target)
      : options_(std::move(options)), dialect_(dialect), target_(std::move(target)) {}
  void GiveBack(std::unique_ptr<Connection> connection);
  SqlResult<void> TryMigrate(std::string_view component, std::span<const Migration> migrations);

  const Options options_;
  const Dialect dialect_;
  const std::string target_;  // path or connection URL
  std::mutex mutex_;
  std::condition_variable free_;
  std::vector<std::unique_ptr<Connection>> idle_;
  int lent_ = 0;
};

}  // namespace tollgate::sql
