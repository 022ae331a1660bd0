// SQL storage of a service: SQLite (sqlite:/path) or PostgreSQL (postgresql://…) behind one
// interface, with the same SQL statements for both. Every call blocks: use them only on threads
// that the service owns for its storage, never on an event loop or a gRPC thread.
//
// SQL that works on both: placeholders $1, $2, …; ON CONFLICT … DO UPDATE SET x = excluded.x;
// RETURNING; CAST(sum(x) AS BIGINT); a trailing FOR UPDATE, which is removed for SQLite, where it
// is not needed. Migration scripts may contain {int}, {text}, {blob} and {strict} (see Migration).
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
  kUnique,         // a unique or primary key constraint failed
  kConstraint,     // another constraint failed (CHECK, NOT NULL, foreign key)
  kRetry,          // serialization failure, deadlock or busy: run the whole transaction again
  kConnection,     // the database is unreachable; the transaction was rolled back
  kCommitUnknown,  // the connection was lost during COMMIT, which may have succeeded
  kOther,          // anything else, such as invalid SQL: a retry does not help
  kLocked,         // another transaction kept a row locked for longer than lock_timeout_ms
  kNodeLost,       // a node of a distributed database is unreachable, the others are not
};

struct SqlError {
  ErrorKind kind = ErrorKind::kOther;
  std::string message;  // for logs; contains no row values
  // No answer came in time. kConnection: the connection was given up; of a distributed database any
  // node may be the one that does not answer. kNodeLost: it may also only be slow.
  bool no_answer = false;
  // Whether a retry may succeed, on a new connection if needed. After kCommitUnknown the caller
  // must be able to detect that its first attempt was committed.
  bool retryable() const {
    return kind == ErrorKind::kRetry || kind == ErrorKind::kConnection ||
           kind == ErrorKind::kCommitUnknown || kind == ErrorKind::kLocked ||
           kind == ErrorKind::kNodeLost;
  }
};

template <typename T>
using SqlResult = BasicResult<T, SqlError>;

// The error of the catalog: kServiceUnavailable if retryable, else kServerError.
Error ToError(const SqlError& error);

// The value of a placeholder. It does not own its text, which must outlive the call.
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

// One row of a result. It and its views are valid only during the callback.
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

// One connection, used by one thread at a time. Each distinct statement is prepared once and
// cached.
class Connection {
 public:
  virtual ~Connection() = default;

  virtual Dialect dialect() const = 0;
  // PostgreSQL with the extension Citus: tables may be distributed over servers by a column
  // (docs/adr/0040).
  virtual bool distributed() const { return false; }
  // False once the connection is known to be lost, until Reconnect succeeds.
  virtual bool healthy() const = 0;
  virtual SqlResult<void> Reconnect() = 0;

  // Calls row for each row of the result.
  virtual SqlResult<void> Query(std::string_view sql, std::span<const Param> params,
                                const RowFn& row) = 0;
  // Returns the number of changed rows.
  virtual SqlResult<int64_t> Execute(std::string_view sql, std::span<const Param> params) = 0;
  // Several statements without parameters.
  virtual SqlResult<void> ExecuteScript(const std::string& script) = 0;

  // From here to Flush or Commit, statements are only sent: one round trip for all of them. Their
  // rows, which are counted as none, and the first error come with Flush or Commit, in order; those
  // behind a failed one do not run. What a row function refers to must live until then. SQLite,
  // where there is no way to go, runs each at once.
  virtual void Pipeline() {}
  virtual SqlResult<void> Flush() { return {}; }

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
  // "ON CONFLICT (a) DO UPDATE SET b = excluded.b" or "". The rows must be distinct. Returns the
  // number of changed rows.
  virtual SqlResult<int64_t> ExecuteRows(std::string_view head, int columns,
                                         std::span<const Param> cells, std::string_view tail = "");
  // Reads rows by many keys: head "SELECT a, b FROM t WHERE a IN", tail "ORDER BY a FOR UPDATE".
  // If the keys are distinct, each row is returned once. The order is that of `tail` within each
  // chunk of keys: sort the keys to get an order across chunks.
  SqlResult<void> QueryIn(std::string_view head, std::span<const Param> keys, std::string_view tail,
                          const RowFn& row);
  // The same by keys of several columns: head "SELECT a, b FROM t WHERE", the key's columns with
  // their types, cells key by key. The order is that of `tail` within each chunk of keys; on a
  // distributed database keys with the same first column, one after the other, are a chunk.
  struct KeyColumn {
    std::string_view name;
    Param::Kind kind = Param::Kind::kInt;
  };
  virtual SqlResult<void> QueryKeys(std::string_view head, std::span<const KeyColumn> columns,
                                    std::span<const Param> keys, std::string_view tail,
                                    const RowFn& row);

 private:
  std::string text_;  // reused by the two functions above
};

// While it lives, statements of this thread are ended soon after cancelled returns true, with
// kOther: for reads whose caller may leave. The function may be called often.
class CancelScope {
 public:
  explicit CancelScope(std::function<bool()> cancelled);
  ~CancelScope();
  CancelScope(const CancelScope&) = delete;
  CancelScope& operator=(const CancelScope&) = delete;
  // Whether this thread has a scope, and whether its caller has left.
  static bool Active();
  static bool Cancelled();

 private:
  const std::function<bool()> cancelled_;
  const CancelScope* const outer_;
};
inline SqlError CancelledError() {
  return {ErrorKind::kOther, "sql: cancelled, since its caller has left"};
}

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

// One step of a schema, written once for both dialects with these placeholders:
// {int} INTEGER or BIGINT, {text} TEXT (sorted by bytes), {blob} BLOB or BYTEA, {strict} after the
// closing parenthesis of CREATE TABLE. Instead of {strict}: {keyed} for tables that are only
// accessed by their primary key, {hot} for those whose rows also change often.
// {by_id} and {by_time}, also instead of {strict}: {keyed} and, on PostgreSQL, partitioned by range
// of the column id or at_us.
struct Migration {
  int version = 0;  // from 1, without gaps
  std::string_view name;
  std::string_view script;
  // Runs after the script, in the same transaction, for what SQL cannot say; may be null.
  SqlResult<void> (*step)(Connection& connection) = nullptr;
};
std::string ExpandScript(Dialect dialect, std::string_view script);

// A part of a database with migrations of its own.
struct Schema {
  std::string_view component;
  std::span<const Migration> migrations;
};
// Those that Database::Migrate would apply, of a database that may have none yet. Fails when the
// database is of a newer version.
SqlResult<std::span<const Migration>> MissingMigrations(Connection& connection,
                                                        const Schema& schema);

// Sync makes all earlier commits durable; it may run on any thread, but on one at a time. If it
// fails, the content of the file is unknown from then on, and the process aborts
// (docs/design/ledger.md 6).
class LogSync {
 public:
  virtual ~LogSync() = default;
  virtual void Sync() = 0;
};

// A database with a connection pool. Thread-safe.
class Database {
 public:
  struct Options {
    std::string url;
    int connections = 4;            // largest size of the pool
    int connect_timeout_ms = 2000;  // also for waiting for a free connection
    int busy_timeout_ms = 5000;     // SQLite: for waiting for another writer
    // PostgreSQL only:
    int statement_timeout_ms = 10'000;
    int lock_timeout_ms = 0;  // for waiting for a row that another transaction has locked; 0: none
    // Instead of statement_timeout_ms on a distributed database, where a node that stands still
    // keeps a statement for so long, and answers are waited for little longer; 0: that one holds.
    int distributed_timeout_ms = 0;
    // The server ends the session of a client that stops in the middle of a transaction, and with
    // it the locks of the transaction.
    int idle_in_transaction_ms = 30'000;
    // Every statement reads and writes rows by their keys. Plans are made once, and never read a
    // whole table: one that is made while a table is small would stay when it has grown.
    bool by_key_only = false;
    // SQLite: Commit only writes the log, which survives a crash of the process. It survives a
    // power failure once LogSync::Sync has returned. For callers that sync on a thread of their
    // own.
    bool deferred_sync = false;
    // SQLite: the log is copied back to the database file when it has so many pages (of 4 KiB). A
    // page that changes often is copied once for all its changes in the log.
    int checkpoint_pages = 16'000;
  };

  // Only checks the URL. The first call that needs a connection opens it.
  static SqlResult<std::unique_ptr<Database>> Open(Options options);

  Dialect dialect() const { return dialect_; }
  const Options& options() const { return options_; }

  // For a database with deferred_sync; null otherwise, where every commit is durable.
  std::unique_ptr<LogSync> MakeLogSync() const;

  // A new connection outside the pool.
  SqlResult<std::unique_ptr<Connection>> Connect() const;

  // A connection of the pool, which returns to it when this is destroyed.
  class PooledConnection {
   public:
    PooledConnection(Database& database, std::unique_ptr<Connection> connection)
        : database_(&database), connection_(std::move(connection)) {}
    PooledConnection(PooledConnection&&) = default;
    PooledConnection& operator=(PooledConnection&&) = delete;
    ~PooledConnection();
    Connection* operator->() { return connection_.get(); }
    Connection& operator*() { return *connection_; }

   private:
    Database* database_;
    std::unique_ptr<Connection> connection_;
  };
  SqlResult<PooledConnection> Borrow();

  // Runs body in a transaction and commits it. On kRetry and kConnection it starts again, with at
  // most three attempts in all.
  SqlResult<void> Transact(TxMode mode, const std::function<SqlResult<void>(Connection&)>& body);

  // Applies the missing migrations of a component. Several processes may call it at the same time.
  SqlResult<void> Migrate(std::string_view component, std::span<const Migration> migrations);

 private:
  Database(Options options, Dialect dialect, std::string target)
      : options_(std::move(options)), dialect_(dialect), target_(std::move(target)) {}
  void Return(std::unique_ptr<Connection> connection);
  SqlResult<void> TryMigrate(std::string_view component, std::span<const Migration> migrations);

  const Options options_;
  const Dialect dialect_;
  const std::string target_;  // path or connection URL
  std::mutex mutex_;
  std::condition_variable free_;
  std::vector<std::unique_ptr<Connection>> idle_;
  int borrowed_ = 0;
};

}  // namespace tollgate::sql
