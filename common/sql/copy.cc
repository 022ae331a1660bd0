#include "common/sql/copy.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include "common/base/try.h"
#include "common/sql/beside.h"

namespace tollgate::sql {
namespace {

struct Column {
  std::string name;
  Param::Kind kind = Param::Kind::kInt;
  int64_t key = 0;  // place in the primary key, from 1; 0: not part of it
};

struct Table {
  std::string name;
  std::vector<Column> columns;
  std::vector<size_t> key;  // columns of the primary key, in order
  std::vector<std::string> refers_to;
  int64_t new_rows = 0;  // number of rows after the migrations
};

struct Cell {
  bool null = false;
  int64_t number = 0;
  std::string bytes;
  bool operator==(const Cell&) const = default;
};
using Page = std::vector<Cell>;  // row by row

SqlResult<int64_t> CountRows(Connection& db, const std::string& table) {
  int64_t rows = 0;
  TRY(db.Query("SELECT CAST(count(*) AS BIGINT) FROM " + table, {},
               [&](const Row& row) { rows = row.Int(0); }));
  return rows;
}

// Rows must be written after the rows that they refer to.
std::vector<Table> InOrderOfReferences(std::vector<Table> tables) {
  std::vector<Table> ordered;
  const auto ready = [&](const Table& table) {
    return std::ranges::all_of(table.refers_to, [&](const std::string& name) {
      return name == table.name || std::ranges::count(ordered, name, &Table::name) > 0;
    });
  };
  while (!tables.empty()) {
    auto next = std::ranges::find_if(tables, ready);
    if (next == tables.end()) next = tables.begin();  // a circle: the database will refuse it
    ordered.push_back(std::move(*next));
    tables.erase(next);
  }
  return ordered;
}

// Reads the tables and columns from a new SQLite database, which has the same as any other.
SqlResult<std::vector<Table>> ReadTables(std::span<const Schema> schemas) {
  Database::Options options;
  options.url = "sqlite::memory:";
  options.connections = 1;  // each connection has a database of its own
  TRY(auto database, Database::Open(options));
  for (const Schema& schema : schemas) {
    TRY(database->Migrate(schema.component, schema.migrations));
  }
  TRY(auto db, database->Borrow());
  std::vector<Table> tables;
  auto read = db->Query(
      "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
      " AND name <> 'schema_migration' ORDER BY name",
      {}, [&](const Row& row) { tables.push_back({.name = row.Text(0)}); });
  for (Table& table : tables) {
    if (!read.ok()) break;
    read = db->Query("SELECT name, type, pk FROM pragma_table_info($1) ORDER BY cid", {table.name},
                     [&](const Row& row) {
                       const std::string_view type = row.Bytes(1);
                       table.columns.push_back({row.Text(0),
                                                type == "TEXT"   ? Param::Kind::kText
                                                : type == "BLOB" ? Param::Kind::kBlob
                                                                 : Param::Kind::kInt,
                                                row.Int(2)});
                     });
    for (int64_t place = 1;; ++place) {
      const size_t before = table.key.size();
      for (size_t i = 0; i < table.columns.size(); ++i) {
        if (table.columns[i].key == place) table.key.push_back(i);
      }
      if (table.key.size() == before) break;
    }
    if (table.key.empty()) return Refused("table " + table.name + " has no primary key");
    if (read.ok()) {
      read = db->Query("SELECT \"table\" FROM pragma_foreign_key_list($1)", {table.name},
                       [&](const Row& row) { table.refers_to.push_back(row.Text(0)); });
    }
    TRY(auto rows, CountRows(*db, table.name));
    table.new_rows = rows;
  }
  if (!read.ok()) return Fail{std::move(read).error()};
  return InOrderOfReferences(std::move(tables));
}

std::string ColumnList(const Table& table) {
  std::string list;
  for (const Column& column : table.columns) {
    if (!list.empty()) list += ", ";
    list += column.name;
  }
  return list;
}

Param ToParam(const Column& column, const Cell& cell) {
  if (cell.null) return nullptr;
  if (column.kind == Param::Kind::kInt) return cell.number;
  return column.kind == Param::Kind::kBlob ? Param::Blob(cell.bytes) : Param(cell.bytes);
}

// Reads the rows of a table page by page, in the order of the primary key, which is the same on
// each database.
class Reader {
 public:
  Reader(Connection& db, const Table& table, int page_rows) : db_(db), table_(table) {
    const std::string head = "SELECT " + ColumnList(table) + " FROM " + table.name;
    std::string key, places;
    for (size_t i = 0; i < table.key.size(); ++i) {
      key += (i ? ", " : "") + table.columns[table.key[i]].name;
      places += (i ? ", $" : "$") + std::to_string(i + 1);
    }
    const std::string tail = " ORDER BY " + key + " LIMIT " + std::to_string(page_rows);
    first_ = head + tail;
    next_ = head + " WHERE (" + key + ") > (" + places + ")" + tail;
  }

  // An empty page is the end.
  SqlResult<Page> Next() {
    std::vector<Param> after;
    for (size_t i = 0; i < last_.size(); ++i) {
      after.push_back(ToParam(table_.columns[table_.key[i]], last_[i]));
    }
    Page page;
    auto read = db_.Query(after.empty() ? first_ : next_, after, [&](const Row& row) {
      for (size_t i = 0; i < table_.columns.size(); ++i) {
        Cell& cell = page.emplace_back();
        const int at = static_cast<int>(i);
        cell.null = row.IsNull(at);
        if (cell.null) continue;
        if (table_.columns[i].kind == Param::Kind::kInt) {
          cell.number = row.Int(at);
        } else {
          cell.bytes = row.Text(at);
        }
      }
    });
    if (!read.ok()) return Fail{std::move(read).error()};
    if (!page.empty()) {
      last_.clear();
      const size_t row = page.size() - table_.columns.size();
      for (const size_t column : table_.key) last_.push_back(page[row + column]);
    }
    return page;
  }

 private:
  Connection& db_;
  const Table& table_;
  std::string first_;
  std::string next_;
  std::vector<Cell> last_;  // the primary key of the last row that was read
};

SqlResult<int64_t> CopyRows(Connection& from, Connection& to, const Table& table, int page_rows) {
  const std::string head = "INSERT INTO " + table.name + " (" + ColumnList(table) + ") VALUES";
  const size_t columns = table.columns.size();
  int64_t rows = 0;
  Reader source(from, table, page_rows);
  for (;;) {
    TRY(auto page, source.Next());
    if (page.empty()) return rows;
    std::vector<Param> cells;
    cells.reserve(page.size());
    for (size_t i = 0; i < page.size(); ++i) {
      cells.push_back(ToParam(table.columns[i % columns], page[i]));
    }
    TRY(to.ExecuteRows(head, static_cast<int>(columns), cells));
    rows += static_cast<int64_t>(page.size() / columns);
  }
}

SqlResult<void> CompareRows(Connection& from, Connection& to, const Table& table, int page_rows) {
  Reader source(from, table, page_rows), copy(to, table, page_rows);
  for (;;) {
    TRY(auto expected, source.Next());
    TRY(auto found, copy.Next());
    if (expected != found) return Refused("the copied rows of " + table.name + " differ");
    if (expected.empty()) return {};
  }
}

SqlResult<void> CheckIsNew(Connection& to, const std::vector<Table>& tables) {
  for (const Table& table : tables) {
    TRY(auto rows, CountRows(to, table.name));
    if (rows != table.new_rows) {
      return Refused("the new database is in use: its table " + table.name + " has " +
                     std::to_string(rows) + " rows");
    }
  }
  return {};
}

}  // namespace

SqlResult<std::vector<CopiedTable>> CopyDatabase(const CopyOptions& options) {
  TRY(auto from, ConnectBeside(options.from, /*read_only=*/false));
  for (const Schema& schema : options.schemas) {
    TRY(auto missing, MissingMigrations(*from, schema));
    if (!missing.empty()) {
      return Refused("the old database lacks migrations of " + std::string(schema.component) +
                     ": start this version on it once");
    }
  }
  TRY(auto tables, ReadTables(options.schemas));

  Database::Options target;
  target.url = options.to;
  target.statement_timeout_ms = 0;
  target.idle_in_transaction_ms = 0;
  TRY(auto database, Database::Open(target));
  for (const Schema& schema : options.schemas) {
    TRY(database->Migrate(schema.component, schema.migrations));
  }
  TRY(auto to, database->Connect());

  // The writer's transaction of SQLite keeps others from writing; PostgreSQL reads one snapshot.
  TRY(auto reading, Transaction::Begin(*from, from->dialect() == Dialect::kSqlite ? TxMode::kWrite
                                                                                  : TxMode::kRead));
  if (options.prepare) {
    TRY(options.prepare(*from, *to));
  }
  TRY(auto writing, Transaction::Begin(*to));
  TRY(CheckIsNew(*to, tables));
  for (const Table& table : tables | std::views::reverse) {
    TRY(to->Execute("DELETE FROM " + table.name));
  }
  std::vector<CopiedTable> copied;
  for (const Table& table : tables) {
    TRY(auto rows, CopyRows(*from, *to, table, options.page_rows));
    TRY(CompareRows(*from, *to, table, options.page_rows));
    copied.push_back({table.name, rows});
  }
  TRY(writing.Commit());
  return copied;
}

std::string ToText(const std::vector<CopiedTable>& tables) {
  std::string text;
  for (const CopiedTable& table : tables) {
    if (table.rows > 0) text += table.name + ": " + std::to_string(table.rows) + " rows\n";
  }
  return text;
}

}  // namespace tollgate::sql
