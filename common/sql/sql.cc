#include "common/sql/sql.h"

#include <chrono>
#include <thread>

#include "common/base/clock.h"
#include "common/base/try.h"
#include "common/sql/drivers.h"
#include "common/sql/statement_text.h"

namespace tollgate::sql {
namespace {

// The largest power of two that fits, up to 64: it yields few distinct statements, so that all of
// them stay prepared.
int ChunkRows(size_t left) {
  int rows = 64;
  while (static_cast<size_t>(rows) > left) rows /= 2;
  return rows;
}

void ReplaceAll(std::string& text, std::string_view word, std::string_view with) {
  for (size_t at = text.find(word); at != std::string::npos;
       at = text.find(word, at + with.size())) {
    text.replace(at, word.size(), with);
  }
}

}  // namespace

Error ToError(const SqlError& error) {
  if (error.retryable()) return Unavailable(error.message).error;
  return Internal(error.message).error;
}

SqlResult<int64_t> Connection::ExecuteRows(std::string_view head, int columns,
                                           std::span<const Param> cells, std::string_view tail) {
  int64_t changed = 0;
  int rows_in_text = 0;
  while (!cells.empty()) {
    const int rows = ChunkRows(cells.size() / columns);
    const size_t count = static_cast<size_t>(rows) * columns;
    if (rows != rows_in_text) {
      text_.assign(head);
      AppendTuples(text_, rows, columns);
      text_ += ' ';
      text_ += tail;
      rows_in_text = rows;
    }
    TRY(auto done, Execute(text_, cells.first(count)));
    changed += done;
    cells = cells.subspan(count);
  }
  return changed;
}

SqlResult<void> Connection::QueryIn(std::string_view head, std::span<const Param> keys,
                                    std::string_view tail, const RowFn& row) {
  // A partial chunk is padded with its last key, which does not change the result of IN.
  std::vector<Param> padded;
  while (!keys.empty()) {
    size_t size = 1;
    if (dialect() == Dialect::kPostgres) {
      while (size < keys.size() && size < 256) size *= 4;
    }
    std::span<const Param> chunk = keys.first(std::min(size, keys.size()));
    keys = keys.subspan(chunk.size());
    if (chunk.size() < size) {
      padded.assign(chunk.begin(), chunk.end());
      padded.resize(size, chunk.back());
      chunk = padded;
    }
    text_.assign(head);
    AppendTuples(text_, 1, static_cast<int>(size));
    text_ += ' ';
    text_ += tail;
    TRY(Query(text_, chunk, row));
  }
  return {};
}

SqlResult<void> Connection::QueryKeys(std::string_view head, std::span<const KeyColumn> columns,
                                      std::span<const Param> keys, std::string_view tail,
                                      const RowFn& row) {
  std::string text(head);
  AppendEquals(text, columns);
  text += ' ';
  text += tail;
  for (; !keys.empty(); keys = keys.subspan(columns.size())) {
    TRY(Query(text, keys.first(columns.size()), row));
  }
  return {};
}

namespace {
thread_local const CancelScope* current_scope = nullptr;
}  // namespace

CancelScope::CancelScope(std::function<bool()> cancelled)
    : cancelled_(std::move(cancelled)), outer_(std::exchange(current_scope, this)) {}
CancelScope::~CancelScope() { current_scope = outer_; }
bool CancelScope::Active() { return current_scope != nullptr; }
bool CancelScope::Cancelled() { return current_scope != nullptr && current_scope->cancelled_(); }

SqlResult<Transaction> Transaction::Begin(Connection& connection, TxMode mode) {
  TRY(connection.Begin(mode));
  return Transaction(connection);
}

std::string ExpandScript(Dialect dialect, std::string_view script) {
  const bool sqlite = dialect == Dialect::kSqlite;
  std::string text(script);
  ReplaceAll(text, "{int}", sqlite ? "INTEGER" : "BIGINT");
  // Both sort by bytes, so that reports and locks have the same order.
  ReplaceAll(text, "{text}", sqlite ? "TEXT" : "TEXT COLLATE \"C\"");
  ReplaceAll(text, "{blob}", sqlite ? "BLOB" : "BYTEA");
  ReplaceAll(text, "{strict}", sqlite ? "STRICT" : "");
  ReplaceAll(text, "{by_id}", sqlite ? "STRICT, WITHOUT ROWID" : "PARTITION BY RANGE (id)");
  ReplaceAll(text, "{by_time}", sqlite ? "STRICT, WITHOUT ROWID" : "PARTITION BY RANGE (at_us)");
  ReplaceAll(text, "{keyed}", sqlite ? "STRICT, WITHOUT ROWID" : "");
  // Leaves free space, so that an updated row stays in its page (PostgreSQL HOT updates).
  ReplaceAll(text, "{hot}", sqlite ? "STRICT, WITHOUT ROWID" : "WITH (fillfactor = 60)");
  return text;
}

SqlResult<std::unique_ptr<Database>> Database::Open(Options options) {
  const std::string_view url = options.url;
  constexpr std::string_view kSqlite = "sqlite:";
  if (url.starts_with(kSqlite) && url.size() > kSqlite.size()) {
    std::string path(url.substr(kSqlite.size()));
    return std::unique_ptr<Database>(
        new Database(std::move(options), Dialect::kSqlite, std::move(path)));
  }
  if (url.starts_with("postgresql://") || url.starts_with("postgres://")) {
    std::string target(url);
    TRY(CheckPostgresUrl(target));
    return std::unique_ptr<Database>(
        new Database(std::move(options), Dialect::kPostgres, std::move(target)));
  }
  return Fail{
      SqlError{ErrorKind::kOther, "the storage URL must be sqlite:/path or postgresql://…"}};
}

SqlResult<std::unique_ptr<Connection>> Database::Connect() const {
  return dialect_ == Dialect::kSqlite ? ConnectSqlite(target_, options_)
                                      : ConnectPostgres(target_, options_);
}

Database::PooledConnection::~PooledConnection() {
  if (connection_) database_->Return(std::move(connection_));
}

SqlResult<Database::PooledConnection> Database::Borrow() {
  {
    std::unique_lock lock(mutex_);
    const auto wait = std::chrono::milliseconds(options_.connect_timeout_ms);
    const bool free = free_.wait_for(
        lock, wait, [this] { return !idle_.empty() || borrowed_ < options_.connections; });
    if (!free) return Fail{SqlError{ErrorKind::kConnection, "sql: all connections are busy"}};
    ++borrowed_;
    if (!idle_.empty()) {
      auto connection = std::move(idle_.back());
      idle_.pop_back();
      return PooledConnection(*this, std::move(connection));
    }
  }
  auto made = Connect();
  if (!made.ok()) {
    const std::lock_guard lock(mutex_);
    --borrowed_;
    free_.notify_one();
    return Fail{std::move(made).error()};
  }
  return PooledConnection(*this, std::move(*made));
}

void Database::Return(std::unique_ptr<Connection> connection) {
  const std::lock_guard lock(mutex_);
  --borrowed_;
  if (connection->healthy()) {
    idle_.push_back(std::move(connection));
  } else {
    idle_.clear();  // the other connections have most likely lost the same server
  }
  free_.notify_one();
}

SqlResult<void> Database::Transact(TxMode mode,
                                   const std::function<SqlResult<void>(Connection&)>& body) {
  for (int attempt = 1;; ++attempt) {
    TRY(auto pooled, Borrow());
    SqlResult<void> result = pooled->Begin(mode);
    if (result.ok()) {
      result = body(*pooled);
      if (result.ok()) {
        result = pooled->Commit();
      } else {
        pooled->Rollback();
      }
    }
    if (result.ok()) return result;
    const ErrorKind kind = result.error().kind;
    const bool again = kind == ErrorKind::kRetry || kind == ErrorKind::kConnection;
    if (!again || attempt == 3) return result;
  }
}

SqlResult<void> Database::Migrate(std::string_view component,
                                  std::span<const Migration> migrations) {
  // If several processes migrate concurrently, all but one get a duplicate key or a deadlock, and
  // find the schema up to date at their next attempt.
  for (int attempt = 1;; ++attempt) {
    auto done = TryMigrate(component, migrations);
    if (done.ok() || attempt == 5) return done;
    const ErrorKind kind = done.error().kind;
    if (kind != ErrorKind::kRetry && kind != ErrorKind::kUnique) return done;
    std::this_thread::sleep_for(std::chrono::milliseconds(20 * attempt));
  }
}

SqlResult<std::span<const Migration>> MissingMigrations(Connection& connection,
                                                        const Schema& schema) {
  const bool sqlite = connection.dialect() == Dialect::kSqlite;
  int64_t tables = 0;
  TRY(connection.Query(
      sqlite ? "SELECT count(*) FROM sqlite_master WHERE name = 'schema_migration'"
             : "SELECT count(*) FROM pg_class WHERE oid = to_regclass('schema_migration')",
      {}, [&](const Row& row) { tables = row.Int(0); }));
  if (tables == 0) return schema.migrations;
  int64_t current = 0;
  TRY(connection.Query(
      "SELECT CAST(coalesce(max(version), 0) AS BIGINT) FROM schema_migration WHERE component = $1",
      {schema.component}, [&](const Row& row) { current = row.Int(0); }));
  if (current > static_cast<int64_t>(schema.migrations.size())) {
    return Fail{SqlError{ErrorKind::kOther, "sql: the schema of " + std::string(schema.component) +
                                                " is newer than this version of the program"}};
  }
  // Versions are numbered from 1 without gaps.
  return schema.migrations.subspan(static_cast<size_t>(current));
}

SqlResult<void> Database::TryMigrate(std::string_view component,
                                     std::span<const Migration> migrations) {
  TRY(auto pooled, Borrow());
  Connection& connection = *pooled;
  TRY(connection.ExecuteScript(ExpandScript(dialect_,
                                            "CREATE TABLE IF NOT EXISTS schema_migration "
                                            "(component {text} NOT NULL, version {int} NOT NULL,"
                                            " name {text} NOT NULL, applied_us {int} NOT NULL, "
                                            "PRIMARY KEY (component, version)) {strict}")));
  TRY(auto tx, Transaction::Begin(connection));
  if (dialect_ == Dialect::kPostgres) {
    // Moving the rows of a large table may take longer than any other statement.
    TRY(
        connection.ExecuteScript("SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0;"
                                 " SET LOCAL idle_in_transaction_session_timeout = 0"));
    TRY(connection.ExecuteScript("LOCK TABLE schema_migration IN ACCESS EXCLUSIVE MODE"));
  }
  TRY(auto missing, MissingMigrations(connection, {component, migrations}));
  for (const Migration& migration : missing) {
    TRY(connection.ExecuteScript(ExpandScript(dialect_, migration.script)));
    if (migration.step != nullptr) {
      TRY(migration.step(connection));
    }
    TRY(connection.Execute(
        "INSERT INTO schema_migration (component, version, name, applied_us) VALUES ($1, $2, $3, "
        "$4)",
        {component, migration.version, migration.name, SystemClock::Get().WallUs()}));
  }
  return tx.Commit();
}

}  // namespace tollgate::sql
