// An audit log in a database: entries are appended in the transaction of each change and read in
// pages. auth keeps the log that people read in tables of its own. Every other service with admin
// writes keeps its entries in audit_entry, and auth copies them from there (decision 56).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/audit/chain.h"
#include "common/sql/sql.h"

namespace tollgate::audit {

// The table names of a log. The head has one row, id 1, with audit_sequence and audit_hash of the
// newest entry; every append locks it.
struct Tables {
  std::string_view entries;
  std::string_view head;
};

inline constexpr Tables kEntries = {"audit_entry", "audit_head"};
inline constexpr std::string_view kEntriesComponent = "audit";
std::span<const sql::Migration> EntriesMigrations();
// Creates the tables of kEntries. Several parts of a service may call it, also concurrently.
sql::SqlResult<void> Migrate(sql::Database& database);

// Adds entries to the log within the transaction, which must be a writing one. The caller sets all
// members except sequence, hash and format. Other appends wait until the transaction ends: call it
// last.
sql::SqlResult<void> Append(sql::Connection& transaction, const Tables& tables,
                            std::span<Record> records);
sql::SqlResult<void> Append(sql::Connection& transaction, const Tables& tables, Record record);

// "SELECT … FROM …" for ReadRecord.
std::string SelectRecords(const Tables& tables);
Record ReadRecord(const sql::Row& row);

// The caller and the call that make a change.
struct Origin {
  // A caller with only a name.
  Origin(std::string name) : actor(std::move(name)) {}  // NOLINT: implicit
  Origin(const char* name) : actor(name) {}             // NOLINT: implicit
  Origin(std::string name, std::string from, std::string call)
      : actor(std::move(name)), address(std::move(from)), request_id(std::move(call)) {}

  std::string actor;
  std::string address;
  std::string request_id;
};
// An entry about a change made by the origin.
Record RecordOf(const Origin& by, int64_t at_us, std::string action, std::string workspace_id,
                std::string subject, std::string detail);

struct Head {
  int64_t sequence = 0;
  std::string hash;
};
// nullopt if the row is missing.
sql::SqlResult<std::optional<Head>> ReadHead(sql::Connection& connection, const Tables& tables);
// The entries after this number, oldest first.
sql::SqlResult<std::vector<Record>> ReadAfter(sql::Connection& connection, const Tables& tables,
                                              int64_t after, int limit);

// Entries of a log after a number, oldest first, with the head of the log at that time.
struct Page {
  std::vector<Record> records;
  Head head;
};
sql::SqlResult<Page> ReadPage(sql::Connection& connection, const Tables& tables, int64_t after,
                              int limit);

}  // namespace tollgate::audit
