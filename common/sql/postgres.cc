#include "common/base/try.h"
#include "common/sql/postgres_connection.h"

#include "common/sql/postgres_connect.h"
#include "common/sql/statement_text.h"

namespace tollgate::sql {
namespace {

constexpr std::string_view kNoLimit = "statement_timeout = 0";

}  // namespace

SqlResult<void> PostgresConnection::Reconnect() {
  statements_.clear();
  types_.clear();
  pending_.clear();
  pipeline_ = false;
  unlimited_ = unlimited_transaction_ = distributed_ = no_answer_ = false;
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

SqlResult<void> PostgresConnection::Query(std::string_view sql, std::span<const Param> params,
                                          const RowFn& row) {
  params_.SetValues(params);
  return RunForRows(sql, row);
}

SqlResult<int64_t> PostgresConnection::Execute(std::string_view sql,
                                               std::span<const Param> params) {
  params_.SetValues(params);
  return RunForCount(sql);
}

SqlResult<int64_t> PostgresConnection::ExecuteRows(std::string_view head, int columns,
                                                   std::span<const Param> cells,
                                                   std::string_view tail) {
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
  // With a function as the source, Citus would send the rows to the coordinator first.
  if (distributed_) return Connection::ExecuteRows(head, columns, cells, tail);
  TRY(auto type, RowTypeOf(table));
  const std::vector<int> places = PlacesOf(*type, names);
  if (places.empty()) return Connection::ExecuteRows(head, columns, cells, tail);
  std::string text = "INSERT INTO " + table + " (";
  text.append(names).append(") SELECT ").append(names);
  text += " FROM unnest($1::" + table + "[]) ";
  text += tail;
  params_.SetRows(*type, places, cells, width);
  return RunForCount(text);
}

SqlResult<void> PostgresConnection::QueryKeys(std::string_view head,
                                              std::span<const KeyColumn> columns,
                                              std::span<const Param> keys, std::string_view tail,
                                              const RowFn& row) {
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

SqlResult<void> PostgresConnection::Flush() {
  if (!std::exchange(pipeline_, false)) return healthy() ? SqlResult<void>() : Fail{Lost()};
  const auto pending = std::exchange(pending_, {});
  SqlResult<void> done;
  if (PQpipelineSync(connection_.get()) == 0) done = Fail{Dropped("pipeline")};
  for (const Sent& sent : pending) {
    if (!healthy()) break;
    const ResultPtr result = Next();
    // The statement follows a failed one.
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

SqlResult<void> PostgresConnection::ExecuteScript(const std::string& script) {
  if (!healthy()) return Fail{Lost()};
  // A script that lifts the server's limit also lifts the client's.
  if (script.find(kNoLimit) != std::string::npos) {
    const bool local = script.find("SET LOCAL") != std::string::npos;
    (local ? unlimited_transaction_ : unlimited_) = true;
  }
  // Citus passes the text of a schema change to the other servers unchanged.
  const auto statements = distributed_ ? SplitScript(script) : std::vector<std::string>{script};
  for (const std::string& statement : statements) {
    TRY(auto done, Finish(PQsendQuery(connection_.get(), statement.c_str()), "script"));
  }
  return {};
}

SqlResult<void> PostgresConnection::Begin(TxMode mode) {
  const char* text =
      mode == TxMode::kWrite ? "BEGIN" : "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
  auto begun = pipeline_ ? SendPlain(text) : ExecuteScript(text);
  if (!begun.ok() || !distributed_ || options_.lock_timeout_ms == 0) return begun;
  // The coordinator passes the settings to the nodes that lock the rows.
  // idle_in_transaction_session_timeout makes a node release its locks when its part of the
  // transaction waits for another node that hangs.
  for (const std::string& limit :
       {"SET LOCAL lock_timeout = " + std::to_string(options_.lock_timeout_ms),
        "SET LOCAL idle_in_transaction_session_timeout = " +
            std::to_string(options_.idle_in_transaction_ms)}) {
    begun = pipeline_ ? SendPlain(limit.c_str()) : ExecuteScript(limit);
    if (!begun.ok()) return begun;
  }
  return begun;
}

SqlResult<void> PostgresConnection::Commit() {
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
  // The connection was lost after COMMIT may have been sent; or a node was lost, which may have
  // committed.
  if (done.error().kind == ErrorKind::kConnection || done.error().kind == ErrorKind::kNodeLost) {
    Rollback();
    return Fail{SqlError{ErrorKind::kCommitUnknown, done.error().message, done.error().no_answer}};
  }
  Rollback();
  return done;
}

void PostgresConnection::Rollback() {
  if (pipeline_) (void)Flush();
  if (healthy() && PQtransactionStatus(connection_.get()) != PQTRANS_IDLE) {
    // A session that is still in a transaction must not be reused.
    if (!ExecuteScript("ROLLBACK").ok()) connection_.reset();
  }
  unlimited_transaction_ = false;
}

SqlResult<void> PostgresConnection::FindCitus() {
  TRY(auto found,
      Finish(PQsendQuery(connection_.get(), "SELECT FROM pg_extension WHERE extname = 'citus'"),
             "connect"));
  distributed_ = PQntuples(found.get()) > 0;
  if (!distributed_) return {};
  std::string settings = "SET plan_cache_mode = auto; SET citus.node_connection_timeout = ";
  if (const int limit_ms = options_.distributed_timeout_ms; limit_ms > 0) {
    // A node that accepts no session is reported before the statement ends.
    settings +=
        std::to_string(limit_ms * 2 / 3) + "; SET statement_timeout = " + std::to_string(limit_ms);
  } else {
    settings += "2000";
  }
  auto set = ExecuteScript(settings);
  if (!set.ok() || options_.lock_timeout_ms == 0) return set;
  return ExecuteScript("SET citus.propagate_set_commands = 'local'");
}

SqlResult<void> PostgresConnection::QueryByShard(std::string_view head,
                                                 std::span<const KeyColumn> columns,
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
    TRY(RunForRows(text, row));
  }
  return {};
}

void PostgresConnection::AppendKeysInArrays(std::string& text, std::span<const KeyColumn> columns,
                                            std::vector<Param::Kind>& kinds, int first) {
  text += " (";
  for (const KeyColumn& column : columns) {
    if (!kinds.empty()) text += ", ";
    text += column.name;
    kinds.push_back(column.kind);
  }
  text += ") IN (SELECT * FROM unnest(" + ArrayPlaceholders(kinds, first) + ")) ";
}

SqlResult<std::unique_ptr<Connection>> ConnectPostgres(const std::string& url,
                                                       const Database::Options& options) {
  auto connection = std::make_unique<PostgresConnection>(url, options);
  TRY(connection->Reconnect());
  return std::unique_ptr<Connection>(std::move(connection));
}

}  // namespace tollgate::sql
