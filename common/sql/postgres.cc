#include <libpq-fe.h>
#include <poll.h>

#include <chrono>
#include <unordered_map>

#include "common/sql/drivers.h"
#include "common/sql/postgres_cancel.h"
#include "common/sql/postgres_connect.h"
#include "common/sql/postgres_params.h"
#include "common/sql/postgres_result.h"

namespace tollgate::sql {
namespace {

struct CloseConn {
  void operator()(PGconn* connection) const { PQfinish(connection); }
};
constexpr int kCancelCheckMs = 20;
constexpr std::string_view kQueryCancelled = "57014";
constexpr std::string_view kNotSupported = "0A000";
// How long the end of a cancelled statement is waited for.
constexpr std::chrono::seconds kCancelWait(1);
// The server ends a statement after statement_timeout_ms. An answer that comes so much later still
// will not come: the server stands still, or its machine is gone.
constexpr int kAnswerGraceMs = 2000;
constexpr std::string_view kNoLimit = "statement_timeout = 0";

using SteadyClock = std::chrono::steady_clock;

class PostgresConnection : public Connection {
 public:
  PostgresConnection(std::string url, const Database::Options& options)
      : url_(std::move(url)), options_(options) {}

  Dialect dialect() const override { return Dialect::kPostgres; }
  bool distributed() const override { return distributed_; }
  bool healthy() const override {
    return connection_ && PQstatus(connection_.get()) == CONNECTION_OK;
  }

  SqlResult<void> Reconnect() override {
    statements_.clear();
    types_.clear();
    pending_.clear();
    pipeline_ = false;
    unlimited_ = unlimited_transaction_ = distributed_ = false;
    connection_.reset();
    connection_.reset(OpenPostgres(url_, options_));
    if (!healthy()) {
      SqlError error{ErrorKind::kConnection, Trimmed("postgresql: connect: ")};
      connection_.reset();
      return Fail{std::move(error)};
    }
    PQsetNoticeProcessor(connection_.get(), [](void*, const char*) {}, nullptr);
    return FindCitus();
  }

  SqlResult<void> Query(std::string_view sql, std::span<const Param> params,
                        const RowFn& row) override {
    params_.SetValues(params);
    return RunForRows(sql, row);
  }
  SqlResult<int64_t> Execute(std::string_view sql, std::span<const Param> params) override {
    params_.SetValues(params);
    return RunForCount(sql);
  }
  // Many rows as one array of the table's row type: one statement for any number of rows, one
  // parameter, and half of the work of an array per column.
  SqlResult<int64_t> ExecuteRows(std::string_view head, int columns, std::span<const Param> cells,
                                 std::string_view tail) override {
    constexpr std::string_view kInsert = "INSERT INTO ";
    constexpr std::string_view kValues = ") VALUES";
    const size_t width = static_cast<size_t>(columns);
    const size_t list = head.find(" (");
    if (cells.size() <= width || list == std::string_view::npos || !head.starts_with(kInsert) ||
        !head.ends_with(kValues)) {
      return Connection::ExecuteRows(head, columns, cells, tail);
    }
    const std::string table(head.substr(kInsert.size(), list - kInsert.size()));
    const std::string_view names = head.substr(list + 2, head.size() - kValues.size() - list - 2);
    // Citus would send rows from a function to the coordinator first.
    if (distributed_) return Connection::ExecuteRows(head, columns, cells, tail);
    auto type = RowTypeOf(table);
    if (!type.ok()) return Fail{std::move(type).error()};
    const std::vector<int> places = PlacesOf(**type, names);
    if (places.empty()) return Connection::ExecuteRows(head, columns, cells, tail);
    std::string text = "INSERT INTO " + table + " (";
    text.append(names).append(") SELECT ").append(names);
    text += " FROM unnest($1::" + table + "[]) ";
    text += tail;
    params_.SetRows(**type, places, cells, width);
    return RunForCount(text);
  }

  SqlResult<void> QueryKeys(std::string_view head, std::span<const KeyColumn> columns,
                            std::span<const Param> keys, std::string_view tail,
                            const RowFn& row) override {
    if (keys.size() <= columns.size()) {
      return Connection::QueryKeys(head, columns, keys, tail, row);
    }
    if (distributed_ && columns.size() > 1) return QueryByShard(head, columns, keys, tail, row);
    std::vector<Param::Kind> kinds;
    std::string text(head);
    AppendKeysInArrays(text, columns, kinds, 1);
    text += tail;
    params_.SetArrays(kinds, keys);
    return RunForRows(text, row);
  }

  void Pipeline() override { pipeline_ = healthy() && PQenterPipelineMode(connection_.get()) == 1; }

  SqlResult<void> Flush() override {
    if (!std::exchange(pipeline_, false)) return healthy() ? SqlResult<void>() : Fail{Lost()};
    const auto pending = std::exchange(pending_, {});
    SqlResult<void> done;
    if (PQpipelineSync(connection_.get()) == 0) done = Fail{Dropped("pipeline")};
    for (const Sent& sent : pending) {
      if (!healthy()) break;
      const ResultPtr result = Next();
      // Behind a failed statement.
      const bool skipped = PQresultStatus(result.get()) == PGRES_PIPELINE_ABORTED;
      auto checked = skipped ? SqlResult<void>() : Check(result.get(), sent.what);
      if (skipped || !checked.ok()) {
        statements_.erase(sent.prepares);
        if (done.ok()) done = std::move(checked);
        if (!healthy()) break;
      } else {
        if (sent.rows) PassRows(result.get(), sent.rows);
        committed_ = std::string_view(PQcmdStatus(result.get())) == "COMMIT";
      }
      while (ResultPtr more = Next()) continue;
    }
    if (healthy()) {
      const ResultPtr end = Next();
      if (!healthy() || PQresultStatus(end.get()) != PGRES_PIPELINE_SYNC ||
          PQexitPipelineMode(connection_.get()) == 0) {
        if (done.ok()) done = Fail{Dropped("pipeline")};
        connection_.reset();
      }
    }
    return done;
  }

  SqlResult<void> ExecuteScript(const std::string& script) override {
    if (!healthy()) return Fail{Lost()};
    // A script that lifts the server's limit lifts this one.
    if (script.find(kNoLimit) != std::string::npos) {
      const bool local = script.find("SET LOCAL") != std::string::npos;
      (local ? unlimited_transaction_ : unlimited_) = true;
    }
    auto result = Finish(PQsendQuery(connection_.get(), script.c_str()), "script");
    if (!result.ok()) return Fail{std::move(result).error()};
    return {};
  }

  SqlResult<void> Begin(TxMode mode) override {
    const char* text =
        mode == TxMode::kWrite ? "BEGIN" : "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
    auto begun = pipeline_ ? SendPlain(text) : ExecuteScript(text);
    if (!begun.ok() || !distributed_ || options_.lock_timeout_ms == 0) return begun;
    // The coordinator tells the other nodes, where the rows are locked.
    const std::string limit =
        "SET LOCAL lock_timeout = " + std::to_string(options_.lock_timeout_ms);
    return pipeline_ ? SendPlain(limit.c_str()) : ExecuteScript(limit);
  }
  SqlResult<void> Commit() override {
    if (!healthy()) return Fail{Lost()};
    committed_ = false;
    if (!pipeline_) Pipeline();
    if (!pipeline_) return Fail{Lost()};
    auto done = SendPlain("COMMIT");
    if (done.ok()) done = Flush();
    unlimited_transaction_ = false;
    if (done.ok()) {
      // COMMIT of a failed transaction reports ROLLBACK.
      if (committed_) return done;
      return Fail{
          SqlError{ErrorKind::kOther, "postgresql: a statement of the transaction had failed"}};
    }
    // COMMIT may have been sent, and the connection was lost before the response; or a node was
    // lost, which may have committed.
    if (done.error().kind == ErrorKind::kConnection || done.error().kind == ErrorKind::kNodeLost) {
      Rollback();
      return Fail{SqlError{ErrorKind::kCommitUnknown, done.error().message}};
    }
    Rollback();
    return done;
  }
  void Rollback() override {
    if (pipeline_) (void)Flush();
    if (healthy() && PQtransactionStatus(connection_.get()) != PQTRANS_IDLE) {
      // A session that is still in its transaction must not be used again.
      if (!ExecuteScript("ROLLBACK").ok()) connection_.reset();
    }
    unlimited_transaction_ = false;
  }

 private:
  SqlError Lost() const { return {ErrorKind::kConnection, "postgresql: the connection is lost"}; }
  std::string Trimmed(std::string text) const {
    if (!connection_) return text + "no answer in time, the connection is given up";
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
    error.kind = healthy() && state ? KindOfSqlState(state) : ErrorKind::kConnection;
    // A migration of another process has changed a table: its row type is read anew.
    if (state != nullptr && std::string_view(state) == "42804" && !types_.empty()) {
      types_.clear();
      error.kind = ErrorKind::kRetry;
    }
    error.message = "postgresql: " + std::string(what) + ": ";
    error.message = primary ? error.message + primary : Trimmed(error.message);
    if (state) error.message += " (" + std::string(state) + ")";
    // The error of another server, which the coordinator hands on: its own connection is as it was.
    if (distributed_ && healthy() && state != nullptr && IsOfAnotherNode(result, state)) {
      error.kind = ErrorKind::kNodeLost;
    }
    // A table has been distributed meanwhile, or a plan is of the time before: a new connection
    // knows.
    if (state != nullptr && std::string_view(state) == kNotSupported &&
        error.message.find("distributed") != std::string::npos) {
      error.kind = ErrorKind::kRetry;
      connection_.reset();
    }
    // The connection to a server that shuts down or became a standby does not recover.
    if (error.kind == ErrorKind::kConnection) connection_.reset();
    return Fail{std::move(error)};
  }

  // Statements of a distributed table need values in their plan, so that they go to one server.
  SqlResult<void> FindCitus() {
    auto found =
        Finish(PQsendQuery(connection_.get(), "SELECT FROM pg_extension WHERE extname = 'citus'"),
               "connect");
    if (!found.ok()) return Fail{std::move(found).error()};
    distributed_ = PQntuples(found->get()) > 0;
    if (!distributed_) return {};
    auto set =
        ExecuteScript("SET plan_cache_mode = auto; SET citus.node_connection_timeout = 2000");
    if (!set.ok() || options_.lock_timeout_ms == 0) return set;
    return ExecuteScript("SET citus.propagate_set_commands = 'local'");
  }

  // One statement for all keys whose first column is the same, with an equality on it: it goes to
  // one server, and may lock rows there.
  SqlResult<void> QueryByShard(std::string_view head, std::span<const KeyColumn> columns,
                               std::span<const Param> keys, std::string_view tail,
                               const RowFn& row) {
    const size_t width = columns.size();
    std::vector<Param::Kind> kinds;
    std::string text(head);
    text.append(" ").append(columns.front().name).append(" = $1 AND");
    AppendKeysInArrays(text, columns.subspan(1), kinds, 2);
    text += tail;
    std::vector<Param> rest;
    while (!keys.empty()) {
      const Param shard = keys.front();
      rest.clear();
      for (; !keys.empty() && keys.front().int_value() == shard.int_value();
           keys = keys.subspan(width)) {
        rest.insert(rest.end(), keys.begin() + 1, keys.begin() + static_cast<int64_t>(width));
      }
      params_.SetValueAndArrays(shard, kinds, rest);
      if (auto done = RunForRows(text, row); !done.ok()) return done;
    }
    return {};
  }
  // " (a, b) IN (SELECT * FROM unnest($1::bigint[], $2::text[])) ", from this placeholder on.
  static void AppendKeysInArrays(std::string& text, std::span<const KeyColumn> columns,
                                 std::vector<Param::Kind>& kinds, int first) {
    text += " (";
    for (const KeyColumn& column : columns) {
      if (!kinds.empty()) text += ", ";
      text += column.name;
      kinds.push_back(column.kind);
    }
    text += ") IN (SELECT * FROM unnest(" + ArrayPlaceholders(kinds, first) + ")) ";
  }

  SteadyClock::time_point AnswerBy() const {
    const bool limited =
        options_.statement_timeout_ms > 0 && !unlimited_ && !unlimited_transaction_;
    if (!limited) return SteadyClock::time_point::max();
    return SteadyClock::now() +
           std::chrono::milliseconds(options_.statement_timeout_ms + kAnswerGraceMs);
  }
  // The next result; null at the end. A server that does not answer in time loses the connection.
  ResultPtr Next() {
    if (!connection_) return nullptr;
    if (WaitForResult(connection_.get(), AnswerBy()))
      return ResultPtr(PQgetResult(connection_.get()));
    connection_.reset();
    return nullptr;
  }
  // The last result of what was sent.
  SqlResult<ResultPtr> Finish(int sent, std::string_view what) {
    ResultPtr last;
    while (sent == 1) {
      ResultPtr next = Next();
      if (!next) break;
      last = std::move(next);
    }
    if (!connection_) last.reset();
    if (auto ok = Check(last.get(), what); !ok.ok()) return Fail{std::move(ok).error()};
    return last;
  }

  // What the connection's message says, and no more of the connection.
  SqlError Dropped(const std::string& what) {
    SqlError error{ErrorKind::kConnection, Trimmed("postgresql: " + what + ": ")};
    connection_.reset();
    return error;
  }

  SqlResult<const char*> Prepared(std::string_view sql) {
    if (!healthy()) return Fail{Lost()};
    const auto found = statements_.find(sql);
    if (found != statements_.end()) return found->second.c_str();
    std::string name = "s" + std::to_string(++names_);
    const std::string text(sql);
    if (pipeline_) {
      if (PQsendPrepare(connection_.get(), name.c_str(), text.c_str(), 0, nullptr) == 0) {
        return Fail{Dropped("prepare")};
      }
      pending_.push_back({"prepare", {}, text});
    } else {
      auto prepared = Finish(
          PQsendPrepare(connection_.get(), name.c_str(), text.c_str(), 0, nullptr), "prepare");
      if (!prepared.ok()) return Fail{std::move(prepared).error()};
    }
    return statements_.emplace(text, std::move(name)).first->second.c_str();
  }

  // The three below run a statement with params_. In a pipeline they only send it.
  SqlResult<void> RunForRows(std::string_view sql, const RowFn& row) {
    if (pipeline_) return Send(sql, row);
    auto result = Run(sql);
    if (!result.ok()) return Fail{std::move(result).error()};
    PassRows(result->get(), row);
    return {};
  }
  SqlResult<int64_t> RunForCount(std::string_view sql) {
    if (pipeline_) {
      if (auto sent = Send(sql, {}); !sent.ok()) return Fail{std::move(sent).error()};
      return 0;
    }
    auto result = Run(sql);
    if (!result.ok()) return Fail{std::move(result).error()};
    return ChangedRows(result->get());
  }
  SqlResult<void> Send(std::string_view sql, const RowFn& row) {
    auto name = Prepared(sql);
    if (!name.ok()) return Fail{std::move(name).error()};
    if (PQsendQueryPrepared(connection_.get(), *name, params_.count(), params_.values(),
                            params_.lengths(), params_.formats(), /*resultFormat=*/1) == 0) {
      return Fail{Dropped("execute")};
    }
    pending_.push_back({"execute", row, ""});
    return {};
  }
  SqlResult<void> SendPlain(const char* text) {
    params_.SetValues({});
    return Send(text, {});
  }

  SqlResult<ResultPtr> Run(std::string_view sql) {
    auto name = Prepared(sql);
    if (!name.ok()) return Fail{std::move(name).error()};
    if (CancelScope::Active()) return RunCancellable(*name);
    return Finish(PQsendQueryPrepared(connection_.get(), *name, params_.count(), params_.values(),
                                      params_.lengths(), params_.formats(), /*resultFormat=*/1),
                  "execute");
  }

  // Waits in steps, and asks the server to end the statement when the caller has left.
  SqlResult<ResultPtr> RunCancellable(const char* name) {
    if (CancelScope::Cancelled()) return Fail{CancelledError()};
    PGconn* const connection = connection_.get();
    bool lost = PQsendQueryPrepared(connection, name, params_.count(), params_.values(),
                                    params_.lengths(), params_.formats(),
                                    /*resultFormat=*/1) == 0;
    bool cancelled = false;
    auto give_up = AnswerBy();
    while (!lost && PQisBusy(connection) != 0) {
      pollfd waiting{PQsocket(connection), POLLIN, 0};
      const int ready = poll(&waiting, 1, kCancelCheckMs);
      if (ready <= 0 && SteadyClock::now() > give_up) {
        // The server does not react; it will find that the connection is closed.
        connection_.reset();
        if (cancelled) return Fail{CancelledError()};
        auto late = Check(nullptr, "execute");
        return Fail{std::move(late).error()};
      }
      if (ready > 0) lost = PQconsumeInput(connection) == 0;
      if (ready > 0 || cancelled || !CancelScope::Cancelled()) continue;
      cancelled = true;
      give_up = SteadyClock::now() + kCancelWait;
      CancelAside(connection);
    }
    ResultPtr result(PQgetResult(connection));
    while (ResultPtr more{PQgetResult(connection)}) continue;
    if (cancelled) {
      // Where the statement ended by itself, the cancel may still arrive and would end another one.
      const char* const state = PQresultErrorField(result.get(), PG_DIAG_SQLSTATE);
      if (state == nullptr || std::string_view(state) != kQueryCancelled) connection_.reset();
      return Fail{CancelledError()};
    }
    auto ok = Check(result.get(), "execute");
    if (ok.ok()) return result;
    return Fail{std::move(ok).error()};
  }

  // Reads it once per connection. Without columns for a temporary table, whose next one of the same
  // name has another type.
  SqlResult<const PostgresRowType*> RowTypeOf(const std::string& table) {
    if (const auto known = types_.find(table); known != types_.end()) return &known->second;
    const bool in_pipeline = pipeline_;
    if (auto flushed = Flush(); !flushed.ok()) return Fail{std::move(flushed).error()};
    params_.SetValues(std::vector<Param>{table});
    auto result = Run(
        "SELECT CAST(c.reltype AS BIGINT), CAST(a.atttypid AS BIGINT), CAST(a.attname AS TEXT)"
        " FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid WHERE c.oid = to_regclass($1)"
        " AND c.relpersistence <> 't'"
        " AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum");
    if (!result.ok()) return Fail{std::move(result).error()};
    PostgresRowType type;
    PassRows(result->get(), [&](const Row& row) {
      type.oid = static_cast<uint32_t>(row.Int(0));
      type.columns.push_back({row.Text(2), static_cast<uint32_t>(row.Int(1))});
    });
    if (in_pipeline) Pipeline();
    return &types_.emplace(table, std::move(type)).first->second;
  }

  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  // A statement of the pipeline whose result has not been read.
  struct Sent {
    const char* what;
    RowFn rows;            // null: none are wanted
    std::string prepares;  // a text of statements_
  };

  const std::string url_;
  const Database::Options options_;
  // Scripts have lifted the limit of statements, for the session or until the transaction ends.
  bool unlimited_ = false;
  bool unlimited_transaction_ = false;
  bool distributed_ = false;
  std::unique_ptr<PGconn, CloseConn> connection_;
  std::unordered_map<std::string, std::string, Hash, std::equal_to<>> statements_;
  std::unordered_map<std::string, PostgresRowType> types_;  // by table
  int64_t names_ = 0;
  bool pipeline_ = false;
  std::vector<Sent> pending_;
  bool committed_ = false;  // the last statement of the last pipeline was a COMMIT that committed
  PostgresParams params_;   // of the next statement
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
