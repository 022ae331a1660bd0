// Reads of single entries and commands. Each runs in one snapshot and does not block the writer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/sql/sql.h"
#include "services/billing/domain/types.h"

namespace tollgate::billing {

// Amount that an entry adds to the posted credit, paid plus granted.
int64_t PostedChange(const Entry& entry);

// An entry and the posted credit after it.
struct PostedEntry {
  Entry entry;
  int64_t balance_nano_usd = 0;
};

struct EntryQuery {
  std::string workspace;
  std::optional<EntryKind> kind;
  int64_t start_us = 0;        // inclusive
  int64_t end_us = INT64_MAX;  // exclusive
  int64_t first_sequence = 1;
  int64_t end_sequence = INT64_MAX;  // exclusive
  int limit = 50;
  // Last entry of the previous page.
  int64_t after_sequence = 0;  // 0: starts with the newest
  int64_t after_balance_nano_usd = 0;
};
// Newest first. Returns at most limit + 1 entries; the extra one shows that there is another page.
sql::SqlResult<std::vector<PostedEntry>> ReadTransactions(sql::Database& database,
                                                          const EntryQuery& query);
sql::SqlResult<std::optional<PostedEntry>> ReadTransaction(sql::Database& database,
                                                           const std::string& workspace,
                                                           int64_t sequence);

// Entries of one request, oldest first. All of them must be within these times.
sql::SqlResult<std::vector<Entry>> ReadRequestEntries(sql::Connection& db,
                                                      const std::string& workspace, const Id& id,
                                                      int64_t first_us, int64_t last_us);

sql::SqlResult<std::optional<Command>> ReadCommandById(sql::Database& database,
                                                       const std::string& workspace,
                                                       const std::string& command_id);
struct CommandQuery {
  std::string workspace;  // empty: all workspaces
  std::vector<CommandKind> kinds;
  std::optional<CommandState> state;
  int limit = 50;
  // Last command of the previous page; an empty id starts with the newest.
  int64_t after_us = 0;
  std::string after_id;
};
// Newest first. Returns at most limit + 1 commands.
sql::SqlResult<std::vector<Command>> ReadCommands(sql::Database& database,
                                                  const CommandQuery& query);

// Whether the workspace has a wallet.
sql::SqlResult<bool> HasWallet(sql::Database& database, const std::string& workspace);

}  // namespace tollgate::billing
