#include <libpq-fe.h>
#include <poll.h>

#include <charconv>
#include <chrono>
#include <unordered_map>

#include "common/sql/drivers.h"
#include "common/sql/postgres_cancel.h"

namespace tollgate::sql {
namespace {

struct CloseConn {
  void operator()(PGconn* connection) const { PQfinish(connection); }
};
struct ClearResult {
  void operator()(PGresult* result) const { PQclear(result); }
};
using ResultPtr = std::unique_ptr<PGresult, ClearResult>;

constexpr int kCancelCheckMs = 20;
// How long the end of a cancelled statement is waited for.
constexpr std::chrono::seconds kCancelWait(1);

ErrorKind KindOf(std::string_view state) {
  if (state == "23505") return ErrorKind::kUnique;
  if (state.starts_with("23")) return ErrorKind::kConstraint;
  // Serialization failure, deadlock, statement timeout.
  if (state == "40001" || state == "40P01" || state == "57014") return ErrorKind::kRetry;
  if (state == "55P03") return ErrorKind::kLocked;
  // Connection exceptions, server starting or stopping, too many connections, disk full. A server
  // that became a standby (25006) is treated as unreachable, and so is one that ended this session
  // because it was idle in a transaction (25P03).
  if (state.starts_with("08") || state.starts_with("57P") || state == "53300" || state == "53100" ||
      state == "25006" || state == "25P03") {
    return ErrorKind::kConnection;
  }
  return ErrorKind::kOther;
}

// Results are in binary format: integers are big-endian, in the width of their type.
class PostgresRow : public Row {
 public:
  explicit PostgresRow(const PGresult* result) : result_(result) {}
  void set_row(int row) { row_ = row; }
  bool IsNull(int column) const override { return PQgetisnull(result_, row_, column) != 0; }
  int64_t Int(int column) const override {
    const std::string_view bytes = Bytes(column);
    if (bytes.empty() || bytes.size() > 8) return 0;
    uint64_t value = (bytes[0] & 0x80) != 0 ? ~uint64_t{0} : 0;
    for (const char byte : bytes) value = value << 8 | static_cast<uint8_t>(byte);
    return static_cast<int64_t>(value);
  }
  std::string_view Bytes(int column) const override {
    return {PQgetvalue(result_, row_, column),
            static_cast<size_t>(PQgetlength(result_, row_, column))};
  }

 private:
  const PGresult* result_;
  int row_ = 0;
};

class PostgresConnection : public Connection {
 public:
  PostgresConnection(std::string url, const Database::Options& options)
      : url_(std::move(url)), options_(options) {}

  Dialect dialect() const override { return Dialect::kPostgres; }
  bool healthy() const override {
    return connection_ && PQstatus(connection_.get()) == CONNECTION_OK;
  }

  SqlResult<void> Reconnect() override {
    statements_.clear();
    connection_.reset();
    const std::string seconds = std::to_string(std::max(2, options_.connect_timeout_ms / 1000));
    // synchronous_commit=on even if the default of the server is weaker. The options come after the
    // URL, so that the URL cannot override them.
    const std::string settings =
        "-c synchronous_commit=on -c client_min_messages=warning -c timezone=UTC"
        " -c tcp_user_timeout=5000 -c idle_in_transaction_session_timeout=" +
        std::to_string(options_.idle_in_transaction_ms) +
        " -c statement_timeout=" + std::to_string(options_.statement_timeout_ms) +
        " -c lock_timeout=" + std::to_string(options_.lock_timeout_ms);
    const char* keys[] = {"connect_timeout", "tcp_user_timeout", "keepalives_idle",
                          "dbname",          "options",          nullptr};
    const char* values[] = {seconds.c_str(), "5000", "5", url_.c_str(), settings.c_str(), nullptr};
    connection_.reset(PQconnectdbParams(keys, values, /*expand_dbname=*/1));
    if (!healthy()) {
      SqlError error{ErrorKind::kConnection, Trimmed("postgresql: connect: ")};
      connection_.reset();
      return Fail{std::move(error)};
    }
    PQsetNoticeProcessor(connection_.get(), [](void*, const char*) {}, nullptr);
    return {};
  }

  SqlResult<void> Query(std::string_view sql, std::span<const Param> params,
                        const RowFn& row) override {
    auto result = Run(sql, params);
    if (!result.ok()) return Fail{std::move(result).error()};
    PassRows(result->get(), row);
    return {};
  }
  SqlResult<int64_t> Execute(std::string_view sql, std::span<const Param> params) override {
    auto result = Run(sql, params);
    if (!result.ok()) return Fail{std::move(result).error()};
    return ChangedRows(result->get());
  }
  // Many rows as one array per column: one statement for any number of rows, and far fewer
  // parameters than with VALUES.
  SqlResult<int64_t> ExecuteRows(std::string_view head, int columns, std::span<const Param> cells,
                                 std::string_view tail) override {
    constexpr std::string_view kValues = " VALUES";
    const size_t width = static_cast<size_t>(columns);
    if (cells.size() <= width || !head.ends_with(kValues)) {
      return Connection::ExecuteRows(head, columns, cells, tail);
    }
    std::vector<Param::Kind> kinds(width, Param::Kind::kInt);
    for (size_t i = 0; i < width; ++i) {
      size_t at = i;
      while (at < cells.size() && cells[at].kind() == Param::Kind::kNull) at += width;
      if (at < cells.size()) kinds[i] = cells[at].kind();
    }
    std::string text(head.substr(0, head.size() - kValues.size()));
    text += " SELECT * FROM unnest(" + ArrayPlaceholders(kinds) + ") ";
    text += tail;
    auto result = RunArrays(text, kinds, cells);
    if (!result.ok()) return Fail{std::move(result).error()};
    return ChangedRows(result->get());
  }

  SqlResult<void> QueryKeys(std::string_view head, std::span<const KeyColumn> columns,
                            std::span<const Param> keys, std::string_view tail,
                            const RowFn& row) override {
    if (keys.size() <= columns.size()) {
      return Connection::QueryKeys(head, columns, keys, tail, row);
    }
    std::vector<Param::Kind> kinds;
    std::string text(head);
    text += " (";
    for (const KeyColumn& column : columns) {
      if (!kinds.empty()) text += ", ";
      text += column.name;
      kinds.push_back(column.kind);
    }
    text += ") IN (SELECT * FROM unnest(" + ArrayPlaceholders(kinds) + ")) ";
    text += tail;
    auto result = RunArrays(text, kinds, keys);
    if (!result.ok()) return Fail{std::move(result).error()};
    PassRows(result->get(), row);
    return {};
  }

  SqlResult<void> ExecuteScript(const std::string& script) override {
    if (!healthy()) return Fail{Lost()};
    const ResultPtr result(PQexec(connection_.get(), script.c_str()));
    return Check(result.get(), "script");
  }

  SqlResult<void> Begin(TxMode mode) override {
    return ExecuteScript(
        mode == TxMode::kWrite ? "BEGIN" : "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
  }
  SqlResult<void> Commit() override {
    const bool was_healthy = healthy();
    const ResultPtr result(was_healthy ? PQexec(connection_.get(), "COMMIT") : nullptr);
    auto committed = was_healthy ? Check(result.get(), "commit") : SqlResult<void>(Fail{Lost()});
    if (committed.ok()) {
      // COMMIT of a failed transaction reports ROLLBACK.
      if (std::string_view(PQcmdStatus(result.get())) == "COMMIT") return committed;
      return Fail{
          SqlError{ErrorKind::kOther, "postgresql: a statement of the transaction had failed"}};
    }
    // COMMIT was sent, but the connection was lost before the response.
    if (was_healthy && committed.error().kind == ErrorKind::kConnection) {
      return Fail{SqlError{ErrorKind::kCommitUnknown, committed.error().message}};
    }
    return committed;
  }
  void Rollback() override {
    if (healthy()) (void)ExecuteScript("ROLLBACK");
  }

 private:
  SqlError Lost() const { return {ErrorKind::kConnection, "postgresql: the connection is lost"}; }
  std::string Trimmed(std::string text) const {
    text += PQerrorMessage(connection_.get());
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
  }

  SqlResult<void> Check(const PGresult* result, std::string_view what) {
    const ExecStatusType status = result ? PQresultStatus(result) : PGRES_FATAL_ERROR;
    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK || status == PGRES_EMPTY_QUERY) {
      return {};
    }
    const char* state = result ? PQresultErrorField(result, PG_DIAG_SQLSTATE) : nullptr;
    const char* primary = result ? PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY) : nullptr;
    SqlError error;
    error.kind = healthy() && state ? KindOf(state) : ErrorKind::kConnection;
    error.message = "postgresql: " + std::string(what) + ": ";
    error.message = primary ? error.message + primary : Trimmed(error.message);
    if (state) error.message += " (" + std::string(state) + ")";
    // The connection to a server that shuts down or became a standby does not recover.
    if (error.kind == ErrorKind::kConnection) connection_.reset();
    return Fail{std::move(error)};
  }

  SqlResult<const char*> Prepared(std::string_view sql) {
    if (!healthy()) return Fail{Lost()};
    const auto found = statements_.find(sql);
    if (found != statements_.end()) return found->second.c_str();
    std::string name = "s" + std::to_string(statements_.size());
    const std::string text(sql);
    const ResultPtr result(PQprepare(connection_.get(), name.c_str(), text.c_str(), 0, nullptr));
    if (auto ok = Check(result.get(), "prepare"); !ok.ok()) return Fail{std::move(ok).error()};
    return statements_.emplace(text, std::move(name)).first->second.c_str();
  }

  SqlResult<ResultPtr> Run(std::string_view sql, std::span<const Param> params) {
    auto name = Prepared(sql);
    if (!name.ok()) return Fail{std::move(name).error()};
    const size_t count = params.size();
    values_.resize(count);
    lengths_.resize(count);
    formats_.resize(count);
    // Texts need a terminating NUL, integers their digits: both are put into one buffer.
    buffer_.clear();
    offsets_.resize(count);
    for (size_t i = 0; i < count; ++i) {
      const Param& param = params[i];
      offsets_[i] = buffer_.size();
      formats_[i] = param.kind() == Param::Kind::kBlob ? 1 : 0;
      if (param.kind() == Param::Kind::kInt) {
        char digits[24];
        const auto end = std::to_chars(digits, digits + sizeof digits, param.int_value()).ptr;
        buffer_.append(digits, end);
      } else {
        buffer_.append(param.bytes());
      }
      lengths_[i] = static_cast<int>(buffer_.size() - offsets_[i]);
      buffer_ += '\0';
    }
    for (size_t i = 0; i < count; ++i) {
      const bool null = params[i].kind() == Param::Kind::kNull;
      values_[i] = null ? nullptr : buffer_.data() + offsets_[i];
    }
    if (CancelScope::Active()) return RunCancellable(*name, static_cast<int>(count));
    ResultPtr result(PQexecPrepared(connection_.get(), *name, static_cast<int>(count),
                                    values_.data(), lengths_.data(), formats_.data(),
                                    /*resultFormat=*/1));
    if (auto ok = Check(result.get(), "execute"); !ok.ok()) return Fail{std::move(ok).error()};
    return result;
  }

  // Waits in steps, and asks the server to end the statement when the caller has left.
  SqlResult<ResultPtr> RunCancellable(const char* name, int count) {
    if (CancelScope::Cancelled()) return Fail{CancelledError()};
    PGconn* const connection = connection_.get();
    bool lost = PQsendQueryPrepared(connection, name, count, values_.data(), lengths_.data(),
                                    formats_.data(), /*resultFormat=*/1) == 0;
    bool cancelled = false;
    std::chrono::steady_clock::time_point give_up;
    while (!lost && PQisBusy(connection) != 0) {
      pollfd waiting{PQsocket(connection), POLLIN, 0};
      const int ready = poll(&waiting, 1, kCancelCheckMs);
      if (ready <= 0 && cancelled && std::chrono::steady_clock::now() > give_up) {
        // The server does not react; it will find that the connection is closed.
        connection_.reset();
        return Fail{CancelledError()};
      }
      if (ready > 0) lost = PQconsumeInput(connection) == 0;
      if (ready > 0 || cancelled || !CancelScope::Cancelled()) continue;
      cancelled = true;
      give_up = std::chrono::steady_clock::now() + kCancelWait;
      CancelAside(connection);
    }
    ResultPtr result(PQgetResult(connection));
    while (ResultPtr more{PQgetResult(connection)}) continue;
    auto ok = Check(result.get(), "execute");
    if (ok.ok()) return result;
    if (cancelled && ok.error().kind == ErrorKind::kRetry) return Fail{CancelledError()};
    return Fail{std::move(ok).error()};
  }

  static void PassRows(const PGresult* result, const RowFn& row) {
    PostgresRow current(result);
    const int rows = PQntuples(result);
    for (int i = 0; i < rows; ++i) {
      current.set_row(i);
      row(current);
    }
  }

  static int64_t ChangedRows(PGresult* result) {
    const std::string_view count = PQcmdTuples(result);
    int64_t changed = 0;
    std::from_chars(count.data(), count.data() + count.size(), changed);
    return changed;
  }

  // "$1::bigint[], $2::text[]"
  static std::string ArrayPlaceholders(std::span<const Param::Kind> kinds) {
    std::string text;
    for (size_t i = 0; i < kinds.size(); ++i) {
      if (i > 0) text += ", ";
      text += '$' + std::to_string(i + 1);
      text += kinds[i] == Param::Kind::kInt    ? "::bigint[]"
              : kinds[i] == Param::Kind::kBlob ? "::bytea[]"
                                               : "::text[]";
    }
    return text;
  }

  // Runs a statement with one array per column, in PostgreSQL's binary format.
  SqlResult<ResultPtr> RunArrays(const std::string& sql, std::span<const Param::Kind> kinds,
                                 std::span<const Param> cells) {
    auto name = Prepared(sql);
    if (!name.ok()) return Fail{std::move(name).error()};
    const size_t width = kinds.size();
    values_.resize(width);
    lengths_.resize(width);
    formats_.assign(width, 1);
    offsets_.resize(width);
    buffer_.clear();
    for (size_t column = 0; column < width; ++column) {
      offsets_[column] = buffer_.size();
      AppendArray(kinds[column], cells, column, width);
      lengths_[column] = static_cast<int>(buffer_.size() - offsets_[column]);
    }
    for (size_t i = 0; i < width; ++i) values_[i] = buffer_.data() + offsets_[i];
    ResultPtr result(PQexecPrepared(connection_.get(), *name, static_cast<int>(width),
                                    values_.data(), lengths_.data(), formats_.data(),
                                    /*resultFormat=*/1));
    if (auto ok = Check(result.get(), "execute"); !ok.ok()) return Fail{std::move(ok).error()};
    return result;
  }

  void AppendArray(Param::Kind kind, std::span<const Param> cells, size_t column, size_t width) {
    // Of pg_type.h.
    constexpr int32_t kByteaOid = 17;
    constexpr int32_t kInt8Oid = 20;
    constexpr int32_t kTextOid = 25;
    const size_t start = buffer_.size();
    bool has_null = false;
    AppendInt(1, 4);  // dimensions
    AppendInt(0, 4);  // replaced below if there is a null
    AppendInt(kind == Param::Kind::kInt    ? kInt8Oid
              : kind == Param::Kind::kBlob ? kByteaOid
                                           : kTextOid,
              4);
    AppendInt(static_cast<int64_t>(cells.size() / width), 4);
    AppendInt(1, 4);  // lower bound
    for (size_t at = column; at < cells.size(); at += width) {
      const Param& cell = cells[at];
      if (cell.kind() == Param::Kind::kNull) {
        AppendInt(-1, 4);
        has_null = true;
      } else if (kind == Param::Kind::kInt) {
        AppendInt(8, 4);
        AppendInt(cell.int_value(), 8);
      } else {
        AppendInt(static_cast<int64_t>(cell.bytes().size()), 4);
        buffer_.append(cell.bytes());
      }
    }
    if (has_null) buffer_[start + 7] = 1;
  }

  void AppendInt(int64_t value, int bytes) {
    for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
      buffer_ += static_cast<char>(static_cast<uint64_t>(value) >> shift & 0xff);
    }
  }

  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  const std::string url_;
  const Database::Options options_;
  std::unique_ptr<PGconn, CloseConn> connection_;
  std::unordered_map<std::string, std::string, Hash, std::equal_to<>> statements_;
  // Reused by Run.
  std::string buffer_;
  std::vector<size_t> offsets_;
  std::vector<const char*> values_;
  std::vector<int> lengths_;
  std::vector<int> formats_;
};

}  // namespace

SqlResult<std::unique_ptr<Connection>> ConnectPostgres(const std::string& url,
                                                       const Database::Options& options) {
  auto connection = std::make_unique<PostgresConnection>(url, options);
  if (auto opened = connection->Reconnect(); !opened.ok()) {
    return Fail{std::move(opened).error()};
  }
  return std::unique_ptr<Connection>(std::move(connection));
}

}  // namespace tollgate::sql
