// A backup of a workspace's rows in all tables, for tests: putting it back is what a restore of the
// database to an earlier time does to the workspace.
#pragma once

#include <string>
#include <vector>

#include "common/base/try.h"
#include "common/sql/sql.h"

namespace tollgate::billing::payments {

class WorkspaceBackup {
 public:
  explicit WorkspaceBackup(sql::Database& database) : database_(database) {}

  // Keeps the rows, in the place of those kept before.
  sql::SqlResult<void> Take(const std::string& workspace) {
    return database_.Transact(sql::TxMode::kWrite,
                              [&](sql::Connection& db) -> sql::SqlResult<void> {
                                if (tables_.empty()) TRY(MakeTables(db));
                                for (const std::string& table : tables_) {
                                  TRY(Copy(db, table, "backup_" + table, workspace));
                                }
                                return {};
                              });
  }
  sql::SqlResult<void> Restore(const std::string& workspace) {
    return database_.Transact(sql::TxMode::kWrite,
                              [&](sql::Connection& db) -> sql::SqlResult<void> {
                                for (const std::string& table : tables_) {
                                  TRY(Copy(db, "backup_" + table, table, workspace));
                                }
                                return {};
                              });
  }

 private:
  static sql::SqlResult<void> Copy(sql::Connection& db, const std::string& from,
                                   const std::string& to, const std::string& workspace) {
    TRY(db.Execute("DELETE FROM " + to + " WHERE workspace = $1", {workspace}));
    TRY(db.Execute("INSERT INTO " + to + " SELECT * FROM " + from + " WHERE workspace = $1",
                   {workspace}));
    return {};
  }
  sql::SqlResult<void> MakeTables(sql::Connection& db) {
    const char* list =
        database_.dialect() == sql::Dialect::kSqlite
            ? "SELECT t.name FROM sqlite_master t JOIN pragma_table_info(t.name) c"
              " WHERE t.type = 'table' AND c.name = 'workspace'"
            : "SELECT CAST(t.relname AS TEXT) FROM pg_class t JOIN pg_attribute c"
              " ON c.attrelid = t.oid WHERE c.attname = 'workspace' AND t.relkind IN ('r', 'p')"
              " AND NOT t.relispartition AND t.relnamespace = current_schema()::regnamespace";
    std::vector<std::string> tables;
    TRY(db.Query(list, {}, [&](const sql::Row& row) { tables.push_back(row.Text(0)); }));
    for (const std::string& table : tables) {
      TRY(db.Execute("CREATE TABLE backup_" + table + " AS SELECT * FROM " + table +
                     " WHERE 1 = 0"));
    }
    tables_ = std::move(tables);
    return {};
  }

  sql::Database& database_;
  std::vector<std::string> tables_;
};

}  // namespace tollgate::billing::payments
