// SQL storage of a service: SQLite (sqlite:/path) or PostgreSQL (postgresql://…) behind one
// interface, with the same SQL statements for both. Every call blocks: use them only on threads
// that the service owns for its storage, never on an event loop or a gRPC thread.
//
// SQL that works on both: placeholders $1, $2, …; ON CONFLICT … DO UPDATE SET x = excluded.x;
// RETURNING; CAST(sum(x) AS BIGINT); a trailing FOR UPDATE, which is removed for SQLite, which does
// not need it. Migration scripts may contain {int}, {text}, {blob} and {strict} (see Migration).
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
  kLocked,         // a row stayed locked by another transaction for longer than lock_timeout_ms
  kNodeLost,       // a node of a distributed database is unreachable; the others are not
};

struct SqlError {
  ErrorKind kind = ErrorKind::kOther;
  std::string message;  // for logs; contains no row values
  // The answer timed out. kConnection: the connection was dropped; on a distributed database any
  // node may be the one that hangs. kNodeLost: the node may also just be slow.
  bool no_answer = false;
  // Whether a retry may succeed, on a new connection if needed. After kCommitUnknown the caller
  // must be able to detect that its first attempt was committed.
  bool retryable() const {
    return kind == ErrorKind::kRetry || kind == ErrorKind::kConnection ||
           kind == ErrorKind::kCommitUnknown || kind == ErrorKind::kLocked ||
           kind == ErrorKind::kNodeLost;
  }
};

// A permanent error: the request is not valid for this database. A retry does not help.
inline Fail<SqlError> Refused(std::string why) {
  return Fail{SqlError{ErrorKind::kOther, std::move(why)}};
}

template <typename T>
using SqlResult = BasicResult<T, SqlError>;

// Converts to the error catalog: kServiceUnavailable if retryable, else kServerError.
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
  // Whether this is PostgreSQL with the extension Citus: tables may be distributed over servers by
  // a column (docs/adr/0040).
  virtual bool distributed() const { return false; }
  // False if the connection is known to be lost, until Reconnect succeeds.
  virtual bool healthy() const = 0;
  virtual SqlResult<void> Reconnect() = 0;

  // Calls row for each row of the result.
  virtual SqlResult<void> Query(std::string_view sql, std::span<const Param> params,
                                const RowFn& row) = 0;
  // Returns the number of changed rows.
  virtual SqlResult<int64_t> Execute(std::string_view sql, std::span<const Param> params) = 0;
  // Runs several statements without parameters.
  virtual SqlResult<void> ExecuteScript(const std::string& script) = 0;

  // From now until Flush or Commit statements are only sent: one round trip for all of them. Row
  // counts are 0. Rows and the first error are delivered by Flush or Commit, in order; statements
  // after a failed one do not run. Objects that a row function refers to must live until then.
  // SQLite has no round trips and runs each statement at once.
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

  // Writes many rows. head: "INSERT INTO t(a, b) VALUES", two columns, cells row by row, tail: "ON
  // CONFLICT (a) DO UPDATE SET b = excluded.b" or "". The rows must be distinct. Returns the number
  // of changed rows.
  virtual SqlResult<int64_t> ExecuteRows(std::string_view head, int columns,
                                         std::span<const Param> cells, std::string_view tail = "");
  // Reads rows by many keys. head: "SELECT a, b FROM t WHERE a IN", tail: "ORDER BY a FOR UPDATE".
  // If the keys are distinct, each row is returned once. `tail` orders rows only within a chunk of
  // keys: sort the keys to get an order across chunks.
  SqlResult<void> QueryIn(std::string_view head, std::span<const Param> keys, std::string_view tail,
                          const RowFn& row);
  // As QueryIn, for keys of several columns. head: "SELECT a, b FROM t WHERE", then the key's
  // columns with their types, and cells key by key. `tail` orders rows only within a chunk of keys.
  // On a distributed database a chunk is a run of keys with the same first column.
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

// While this object lives, statements of this thread are cancelled soon after `cancelled` returns
// true, with kOther. For reads whose caller may leave. The function may be called often.
class CancelScope {
 public:
  explicit CancelScope(std::function<bool()> cancelled);
  ~CancelScope();
  CancelScope(const CancelScope&) = delete;
  CancelScope& operator=(const CancelScope&) = delete;
  // Active: whether this thread has a scope. Cancelled: whether its caller has left.
  static bool Active();
  static bool Cancelled();

 private:
  const std::function<bool()> cancelled_;
  const CancelScope* const outer_;
};
inline SqlError CancelledError() {
  return {ErrorKind::kOther, "sql: cancelled because the caller has left"};
}

// Rolls back in the destructor unless committed.
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

// One step of a schema, written once for both dialects with these placeholders: {int} is INTEGER or
// BIGINT, {text} TEXT (sorted by bytes), {blob} BLOB or BYTEA. {strict} follows the closing
// parenthesis of CREATE TABLE. Alternatives to {strict}: {keyed} for tables accessed only by
// primary key; {hot} for such tables whose rows also change often; {by_id} and {by_time} for
// {keyed} tables that PostgreSQL partitions by range of the column id or at_us.
struct Migration {
  int version = 0;  // from 1, without gaps
  std::string_view name;
  std::string_view script;
  // Runs after the script in the same transaction, for changes that SQL cannot express; may be
  // null.
  SqlResult<void> (*step)(Connection& connection) = nullptr;
};
std::string ExpandScript(Dialect dialect, std::string_view script);

// A part of a database with its own migrations.
struct Schema {
  std::string_view component;
  std::span<const Migration> migrations;
};
// Returns the migrations that Database::Migrate would apply; the database may be empty. Fails if
// the database has a newer version.
SqlResult<std::span<const Migration>> MissingMigrations(Connection& connection,
                                                        const Schema& schema);

// Sync makes all earlier commits durable. It may run on any thread, but only on one at a time. If
// it fails, the content of the file is unknown from then on, and the process aborts
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
    int connections = 4;            // maximum size of the pool
    int connect_timeout_ms = 2000;  // also for waiting for a free connection
    int busy_timeout_ms = 5000;     // SQLite: for waiting for another writer
    // PostgreSQL only:
    int statement_timeout_ms = 10'000;
    int lock_timeout_ms = 0;  // limit of waiting for a locked row; 0: none
    // Replaces statement_timeout_ms on a distributed database, so that a hung node fails a
    // statement sooner; 0: no replacement.
    int distributed_timeout_ms = 0;
    // The server ends the session of a client that stops within a transaction, which releases its
    // locks.
    int idle_in_transaction_ms = 30'000;
    // For statements that all use keys. Plans are made once and never read a whole table: a plan
    // made while a table is small would stay in use after it has grown.
    bool by_key_only = false;
    // SQLite: Commit only writes the log, which survives a crash of the process. It survives a
    // power failure once LogSync::Sync has returned. For callers that sync on a thread of their
    // own.
    bool deferred_sync = false;
    // SQLite: number of pages (of 4 KiB) in the log at which it is copied back to the database
    // file. A page that changes often is copied once for all its changes in the log.
    int checkpoint_pages = 16'000;
  };

  // Only checks the URL. The first call that needs a connection opens it.
  static SqlResult<std::unique_ptr<Database>> Open(Options options);

  Dialect dialect() const { return dialect_; }
  const Options& options() const { return options_; }

  // Null without deferred_sync, where every commit is durable.
  std::unique_ptr<LogSync> MakeLogSync() const;

  // Opens a new connection outside the pool.
  SqlResult<std::unique_ptr<Connection>> Connect() const;

  // A pooled connection; the destructor returns it.
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
  // most three attempts in total.
  SqlResult<void> Transact(TxMode mode, const std::function<SqlResult<void>(Connection&)>& body);

  // Applies the missing migrations of a component. Several processes may call it concurrently.
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
