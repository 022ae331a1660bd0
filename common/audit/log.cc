#include "common/audit/log.h"

#include <algorithm>

#include "common/base/try.h"

namespace tollgate::audit {
namespace {

using sql::Connection;
using sql::Param;
using sql::Row;
using sql::SqlResult;

constexpr std::string_view kColumns =
    "sequence, at_us, actor, action, workspace_id, subject, detail, hash, address, format, "
    "request_id, source, source_sequence, source_hash";
constexpr int kColumnCount = 14;

// source and the columns after it are for copied entries; here they stay empty.
constexpr std::string_view kTables = R"(
CREATE TABLE audit_entry (
  sequence {int} NOT NULL PRIMARY KEY,
  at_us {int} NOT NULL,
  actor {text} NOT NULL,
  action {text} NOT NULL,
  workspace_id {text} NOT NULL,
  subject {text} NOT NULL,
  detail {text} NOT NULL,
  hash {blob} NOT NULL,
  address {text} NOT NULL,
  format {int} NOT NULL,
  request_id {text} NOT NULL,
  source {text} NOT NULL,
  source_sequence {int} NOT NULL,
  source_hash {blob} NOT NULL
) {keyed};
CREATE TABLE audit_head (
  id {int} NOT NULL PRIMARY KEY CHECK (id = 1),
  audit_sequence {int} NOT NULL,
  audit_hash {blob} NOT NULL
) {strict};
)";

SqlResult<void> AddHead(Connection& connection) {
  const std::string genesis = GenesisHash();
  TRY(connection.Execute(
      "INSERT INTO audit_head (id, audit_sequence, audit_hash) VALUES (1, 0, $1)",
      {Param::Blob(genesis)}));
  return {};
}

constexpr sql::Migration kMigrations[] = {{1, "audit entries", kTables, AddHead}};

std::string SelectHead(const Tables& tables) {
  return "SELECT audit_sequence, audit_hash FROM " + std::string(tables.head) + " WHERE id = 1";
}

// PostgreSQL cannot store text with NUL, and the hash covers the whole text.
bool HasNul(const Record& record) {
  for (const std::string* text :
       {&record.actor, &record.address, &record.action, &record.workspace_id, &record.subject,
        &record.detail, &record.request_id, &record.source}) {
    if (text->find('\0') != std::string::npos) return true;
  }
  return false;
}

SqlResult<std::optional<Head>> QueryHead(Connection& connection, const std::string& text) {
  std::optional<Head> head;
  TRY(connection.Query(text, {}, [&](const Row& row) { head = Head{row.Int(0), row.Text(1)}; }));
  return head;
}

}  // namespace

std::span<const sql::Migration> EntriesMigrations() { return kMigrations; }

SqlResult<void> Migrate(sql::Database& database) {
  return database.Migrate(kEntriesComponent, kMigrations);
}

SqlResult<void> Append(Connection& transaction, const Tables& tables, std::span<Record> records) {
  if (records.empty()) return {};
  if (std::ranges::any_of(records, HasNul)) {
    return Fail{sql::SqlError{sql::ErrorKind::kOther, "a text of an audit entry contains U+0000"}};
  }
  if (transaction.distributed()) {
    // Citus drops row locks when it moves a shard to another server. A write in the transaction
    // prevents the move.
    TRY(transaction.Execute("DELETE FROM " + std::string(tables.head) + " WHERE id = 0"));
  }
  TRY(auto found, QueryHead(transaction, SelectHead(tables) + " FOR UPDATE"));
  if (!found) {
    return Fail{sql::SqlError{sql::ErrorKind::kOther, "the head of the audit log is missing"}};
  }
  Head head = *found;
  const std::string insert =
      "INSERT INTO " + std::string(tables.entries) + " (" + std::string(kColumns) + ") VALUES";
  std::vector<Param> cells;
  for (Record& record : records) {
    record.sequence = head.sequence + 1;
    record.format = kFormat;
    record.hash = HashOf(head.hash, record);
    cells.insert(cells.end(),
                 {record.sequence, record.at_us, record.actor, record.action, record.workspace_id,
                  record.subject, record.detail, Param::Blob(record.hash), record.address,
                  record.format, record.request_id, record.source, record.source_sequence,
                  Param::Blob(record.source_hash)});
    head = {record.sequence, record.hash};
  }
  TRY(transaction.ExecuteRows(insert, kColumnCount, cells));
  TRY(transaction.Execute("UPDATE " + std::string(tables.head) +
                              " SET audit_sequence = $1, audit_hash = $2 WHERE id = 1",
                          {head.sequence, Param::Blob(head.hash)}));
  return {};
}

SqlResult<void> Append(Connection& transaction, const Tables& tables, Record record) {
  return Append(transaction, tables, std::span(&record, 1));
}

Record RecordOf(const Origin& by, int64_t at_us, std::string action, std::string workspace_id,
                std::string subject, std::string detail) {
  return {.at_us = at_us,
          .actor = by.actor,
          .action = std::move(action),
          .workspace_id = std::move(workspace_id),
          .subject = std::move(subject),
          .detail = std::move(detail),
          .address = by.address,
          .request_id = by.request_id};
}

std::string SelectRecords(const Tables& tables) {
  return "SELECT " + std::string(kColumns) + " FROM " + std::string(tables.entries);
}

Record ReadRecord(const Row& row) {
  return {.sequence = row.Int(0),
          .at_us = row.Int(1),
          .actor = row.Text(2),
          .action = row.Text(3),
          .workspace_id = row.Text(4),
          .subject = row.Text(5),
          .detail = row.Text(6),
          .hash = row.Text(7),
          .address = row.Text(8),
          .format = row.Int(9),
          .request_id = row.Text(10),
          .source = row.Text(11),
          .source_sequence = row.Int(12),
          .source_hash = row.Text(13)};
}

SqlResult<std::optional<Head>> ReadHead(Connection& connection, const Tables& tables) {
  return QueryHead(connection, SelectHead(tables));
}

SqlResult<std::vector<Record>> ReadAfter(Connection& connection, const Tables& tables,
                                         int64_t after, int limit) {
  std::vector<Record> records;
  TRY(connection.Query(SelectRecords(tables) + " WHERE sequence > $1 ORDER BY sequence LIMIT $2",
                       {after, limit},
                       [&](const Row& row) { records.push_back(ReadRecord(row)); }));
  return records;
}

SqlResult<Page> ReadPage(Connection& connection, const Tables& tables, int64_t after, int limit) {
  TRY(auto snapshot, sql::Transaction::Begin(connection, sql::TxMode::kRead));
  TRY(auto head, ReadHead(connection, tables));
  if (!head) {
    return Fail{sql::SqlError{sql::ErrorKind::kOther, "the head of the audit log is missing"}};
  }
  TRY(auto records, ReadAfter(connection, tables, after, limit));
  return Page{std::move(records), *std::move(head)};
}

}  // namespace tollgate::audit
