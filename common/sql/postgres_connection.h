// A connection to PostgreSQL. Internal to common/sql: postgres.cc implements the interface,
// postgres_statements.cc sends statements and receives results.
#pragma once

#include <libpq-fe.h>

#include <chrono>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/sql/drivers.h"
#include "common/sql/postgres_params.h"
#include "common/sql/postgres_result.h"

namespace tollgate::sql {

class PostgresConnection : public Connection {
 public:
  PostgresConnection(std::string url, const Database::Options& options)
      : url_(std::move(url)), options_(options) {}

  Dialect dialect() const override { return Dialect::kPostgres; }
  bool distributed() const override { return distributed_; }
  bool healthy() const override {
    return connection_ && PQstatus(connection_.get()) == CONNECTION_OK;
  }

  SqlResult<void> Reconnect() override;

  SqlResult<void> Query(std::string_view sql, std::span<const Param> params,
                        const RowFn& row) override;
  SqlResult<int64_t> Execute(std::string_view sql, std::span<const Param> params) override;
  // Sends many rows as one array of the table's row type: one statement for any number of rows, one
  // parameter, and half the work of an array per column.
  SqlResult<int64_t> ExecuteRows(std::string_view head, int columns, std::span<const Param> cells,
                                 std::string_view tail) override;

  SqlResult<void> QueryKeys(std::string_view head, std::span<const KeyColumn> columns,
                            std::span<const Param> keys, std::string_view tail,
                            const RowFn& row) override;

  void Pipeline() override { pipeline_ = healthy() && PQenterPipelineMode(connection_.get()) == 1; }

  SqlResult<void> Flush() override;

  SqlResult<void> ExecuteScript(const std::string& script) override;

  SqlResult<void> Begin(TxMode mode) override;
  SqlResult<void> Commit() override;
  void Rollback() override;

 private:
  struct CloseConn {
    void operator()(PGconn* connection) const { PQfinish(connection); }
  };
  SqlError Lost() const { return {ErrorKind::kConnection, "postgresql: the connection is lost"}; }
  std::string Trimmed(std::string text) const;

  SqlResult<void> Check(const PGresult* result, std::string_view what);

  // Detects Citus. Statements on distributed tables need values in their plan, so that they go to
  // one server.
  SqlResult<void> FindCitus();

  // Runs one statement for all keys with the same first column, with an equality on it, so that it
  // goes to one server and may lock rows there.
  SqlResult<void> QueryByShard(std::string_view head, std::span<const KeyColumn> columns,
                               std::span<const Param> keys, std::string_view tail,
                               const RowFn& row);
  // Appends " (a, b) IN (SELECT * FROM unnest($1::bigint[], $2::text[])) ", starting at this
  // placeholder.
  static void AppendKeysInArrays(std::string& text, std::span<const KeyColumn> columns,
                                 std::vector<Param::Kind>& kinds, int first);

  std::chrono::steady_clock::time_point AnswerBy() const;
  // Returns the next result; null at the end. If the server does not answer in time, the connection
  // is dropped.
  ResultPtr Next();
  // Returns the last result of the sent statement.
  SqlResult<ResultPtr> Finish(int sent, std::string_view what);

  // Drops the connection and returns the error with its message.
  SqlError Dropped(const std::string& what);

  SqlResult<const char*> Prepared(std::string_view sql);

  // The three below run a statement with params_. In a pipeline they only send it.
  SqlResult<void> RunForRows(std::string_view sql, const RowFn& row);
  SqlResult<int64_t> RunForCount(std::string_view sql);
  SqlResult<void> Send(std::string_view sql, const RowFn& row);
  SqlResult<void> SendPlain(const char* text);

  SqlResult<ResultPtr> Run(std::string_view sql);

  // Waits in steps, and asks the server to cancel the statement if the caller has left.
  SqlResult<ResultPtr> RunCancellable(const char* name);

  // Read once per connection. Returns no columns for a temporary table: the next table of that name
  // has another type.
  SqlResult<const PostgresRowType*> RowTypeOf(const std::string& table);

  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  // A statement of the pipeline whose result has not been read.
  struct Sent {
    const char* what;
    RowFn rows;            // null: no rows expected
    std::string prepares;  // a key of statements_
  };

  const std::string url_;
  const Database::Options options_;
  // Set if scripts have lifted the statement limit, for the session or until the transaction ends.
  bool unlimited_ = false;
  bool unlimited_transaction_ = false;
  bool distributed_ = false;
  bool no_answer_ = false;  // the connection was dropped because an answer timed out
  std::unique_ptr<PGconn, CloseConn> connection_;
  std::unordered_map<std::string, std::string, Hash, std::equal_to<>> statements_;
  std::unordered_map<std::string, PostgresRowType> types_;  // by table
  int64_t names_ = 0;
  bool pipeline_ = false;
  std::vector<Sent> pending_;
  bool committed_ = false;  // the last statement of the last pipeline was a COMMIT that committed
  PostgresParams params_;   // for the next statement
};

}  // namespace tollgate::sql
