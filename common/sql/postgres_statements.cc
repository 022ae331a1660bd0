#include <poll.h>

#include <utility>

#include "common/base/try.h"
#include "common/sql/postgres_cancel.h"
#include "common/sql/postgres_connect.h"
#include "common/sql/postgres_connection.h"

namespace tollgate::sql {
namespace {

constexpr int kCancelCheckMs = 20;
constexpr std::string_view kQueryCancelled = "57014";
constexpr std::string_view kNotSupported = "0A000";
// Longest wait for the end of a cancelled statement.
constexpr std::chrono::seconds kCancelWait(1);
// The server ends a statement after statement_timeout_ms. If no answer comes within this additional
// time, the server hangs or its machine is lost.
constexpr int kAnswerGraceMs = 2000;
// As kAnswerGraceMs, for a Citus coordinator. It passes on the cancel and then waits without limit
// for a node that hangs.
constexpr int kDistributedGraceMs = 300;

using SteadyClock = std::chrono::steady_clock;

}  // namespace

std::string PostgresConnection::Trimmed(std::string text) const {
  if (!connection_) return text + "no answer in time; connection dropped";
  text += PQerrorMessage(connection_.get());
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

SqlResult<void> PostgresConnection::Check(const PGresult* result, std::string_view what) {
  const ExecStatusType status = result ? PQresultStatus(result) : PGRES_FATAL_ERROR;
  if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK || status == PGRES_EMPTY_QUERY) {
    return {};
  }
  const char* state = result ? PQresultErrorField(result, PG_DIAG_SQLSTATE) : nullptr;
  const char* primary = result ? PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY) : nullptr;
  SqlError error;
  error.kind = healthy() && state ? KindOfSqlState(state) : ErrorKind::kConnection;
  // Another process has migrated a table: its row type must be read again.
  if (state != nullptr && std::string_view(state) == "42804" && !types_.empty()) {
    types_.clear();
    error.kind = ErrorKind::kRetry;
  }
  error.message = "postgresql: " + std::string(what) + ": ";
  error.message = primary ? error.message + primary : Trimmed(error.message);
  if (state) error.message += " (" + std::string(state) + ")";
  // The coordinator passes on an error of another server; its own connection is unaffected.
  if (distributed_ && healthy() && state != nullptr && IsOfAnotherNode(result, state)) {
    error.kind = ErrorKind::kNodeLost;
  }
  // lock_timeout is shorter, so this is not a lock: a node is slow or hangs. A rollback would wait
  // for it again.
  if (distributed_ && options_.distributed_timeout_ms > 0 && state != nullptr &&
      std::string_view(state) == kQueryCancelled) {
    error.kind = ErrorKind::kNodeLost;
    no_answer_ = true;
    connection_.reset();
  }
  // Citus was installed after this connection was opened. A new connection detects it.
  if (!distributed_ && state != nullptr && std::string_view(state) == kNotSupported &&
      error.message.find("distributed") != std::string::npos) {
    error.kind = ErrorKind::kRetry;
    connection_.reset();
  }
  // The connection does not recover if its server shuts down or became a standby.
  if (error.kind == ErrorKind::kConnection) connection_.reset();
  error.no_answer = std::exchange(no_answer_, false);
  return Fail{std::move(error)};
}

SteadyClock::time_point PostgresConnection::AnswerBy() const {
  const bool limited = options_.statement_timeout_ms > 0 && !unlimited_ && !unlimited_transaction_;
  if (!limited) return SteadyClock::time_point::max();
  if (distributed_ && options_.distributed_timeout_ms > 0) {
    return SteadyClock::now() +
           std::chrono::milliseconds(options_.distributed_timeout_ms + kDistributedGraceMs);
  }
  return SteadyClock::now() +
         std::chrono::milliseconds(options_.statement_timeout_ms + kAnswerGraceMs);
}

ResultPtr PostgresConnection::Next() {
  if (!connection_) return nullptr;
  if (WaitForResult(connection_.get(), AnswerBy()))
    return ResultPtr(PQgetResult(connection_.get()));
  connection_.reset();
  no_answer_ = true;
  return nullptr;
}

SqlResult<ResultPtr> PostgresConnection::Finish(int sent, std::string_view what) {
  ResultPtr last;
  while (sent == 1) {
    ResultPtr next = Next();
    if (!next) break;
    last = std::move(next);
  }
  if (!connection_) last.reset();
  TRY(Check(last.get(), what));
  return last;
}

SqlError PostgresConnection::Dropped(const std::string& what) {
  SqlError error{ErrorKind::kConnection, Trimmed("postgresql: " + what + ": ")};
  connection_.reset();
  return error;
}

SqlResult<const char*> PostgresConnection::Prepared(std::string_view sql) {
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
    TRY(auto done, Finish(PQsendPrepare(connection_.get(), name.c_str(), text.c_str(), 0, nullptr),
                          "prepare"));
  }
  return statements_.emplace(text, std::move(name)).first->second.c_str();
}

SqlResult<void> PostgresConnection::RunForRows(std::string_view sql, const RowFn& row) {
  if (pipeline_) return Send(sql, row);
  TRY(auto result, Run(sql));
  PassRows(result.get(), row);
  return {};
}

SqlResult<int64_t> PostgresConnection::RunForCount(std::string_view sql) {
  if (pipeline_) {
    TRY(Send(sql, {}));
    return 0;
  }
  TRY(auto result, Run(sql));
  return ChangedRows(result.get());
}

SqlResult<void> PostgresConnection::Send(std::string_view sql, const RowFn& row) {
  TRY(auto name, Prepared(sql));
  if (PQsendQueryPrepared(connection_.get(), name, params_.count(), params_.values(),
                          params_.lengths(), params_.formats(), /*resultFormat=*/1) == 0) {
    return Fail{Dropped("execute")};
  }
  pending_.push_back({"execute", row, ""});
  return {};
}

SqlResult<void> PostgresConnection::SendPlain(const char* text) {
  params_.SetValues({});
  return Send(text, {});
}

SqlResult<ResultPtr> PostgresConnection::Run(std::string_view sql) {
  TRY(auto name, Prepared(sql));
  if (CancelScope::Active()) return RunCancellable(name);
  return Finish(PQsendQueryPrepared(connection_.get(), name, params_.count(), params_.values(),
                                    params_.lengths(), params_.formats(), /*resultFormat=*/1),
                "execute");
}

SqlResult<ResultPtr> PostgresConnection::RunCancellable(const char* name) {
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
      // The server does not react. It will notice that the connection is closed.
      connection_.reset();
      no_answer_ = true;
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
    // The statement may have ended by itself. A late cancel would then end the next statement.
    const char* const state = PQresultErrorField(result.get(), PG_DIAG_SQLSTATE);
    if (state == nullptr || std::string_view(state) != kQueryCancelled) connection_.reset();
    return Fail{CancelledError()};
  }
  auto ok = Check(result.get(), "execute");
  if (ok.ok()) return result;
  return Fail{std::move(ok).error()};
}

SqlResult<const PostgresRowType*> PostgresConnection::RowTypeOf(const std::string& table) {
  if (const auto known = types_.find(table); known != types_.end()) return &known->second;
  const bool in_pipeline = pipeline_;
  TRY(Flush());
  params_.SetValues(std::vector<Param>{table});
  TRY(auto result,
      Run("SELECT CAST(c.reltype AS BIGINT), CAST(a.atttypid AS BIGINT), CAST(a.attname AS TEXT)"
          " FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid WHERE c.oid = to_regclass($1)"
          " AND c.relpersistence <> 't'"
          " AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"));
  PostgresRowType type;
  PassRows(result.get(), [&](const Row& row) {
    type.oid = static_cast<uint32_t>(row.Int(0));
    type.columns.push_back({row.Text(2), static_cast<uint32_t>(row.Int(1))});
  });
  if (in_pipeline) Pipeline();
  return &types_.emplace(table, std::move(type)).first->second;
}

}  // namespace tollgate::sql
