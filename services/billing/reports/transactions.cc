#include "services/billing/reports/transactions.h"

#include <algorithm>

#include "common/base/ledger_shard.h"
#include "common/base/try.h"
#include "services/billing/storage/schema.h"

namespace tollgate::billing {
namespace {

using sql::Connection;
using sql::Row;
using sql::SqlResult;

// PostedChange in SQL.
constexpr std::string_view kChange =
    "CAST(coalesce(sum(CASE WHEN credit IN (3, 4) THEN amount ELSE 0 END"
    " - CASE WHEN debit IN (3, 4) THEN amount ELSE 0 END), 0) AS BIGINT)";
static_assert(static_cast<int>(Account::kPaid) == 3 && static_cast<int>(Account::kGranted) == 4);

// Entries of one workspace have no gaps and never go back in time, so a time is found by bisection
// of the primary key.
class Entries {
 public:
  Entries(Connection& db, const std::string& workspace)
      : db_(db), shard_(LedgerShard(workspace)), workspace_(workspace) {}

  // Reads the newest sequence, and the posted credit after it.
  SqlResult<void> ReadHead(int64_t& sequence, int64_t& posted_nano_usd) {
    return db_.Query(
        "SELECT sequence, paid + granted FROM wallet WHERE shard = $1 AND workspace = $2",
        {shard_, workspace_}, [&](const Row& row) {
          sequence = row.Int(0);
          posted_nano_usd = row.Int(1);
        });
  }

  // The first sequence at or after this time; newest + 1 if there is none.
  SqlResult<int64_t> FirstAt(int64_t time_us, int64_t newest) {
    int64_t low = 1;
    int64_t high = newest + 1;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      int64_t at_us = INT64_MIN;  // stays if the entry is archived
      TRY(db_.Query("SELECT at_us FROM entry WHERE shard = $1 AND workspace = $2 AND sequence = $3",
                    {shard_, workspace_, middle}, [&](const Row& row) { at_us = row.Int(0); }));
      if (at_us < time_us) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  // Sum of the changes by entries after the first sequence, up to the last one.
  SqlResult<int64_t> SumOfChanges(int64_t after, int64_t last) {
    int64_t sum = 0;
    static const std::string kText = "SELECT " + std::string(kChange) +
                                     " FROM entry WHERE shard = $1 AND workspace = $2"
                                     " AND sequence > $3 AND sequence <= $4";
    if (after >= last) return sum;
    auto read = db_.Query(kText, {shard_, workspace_, after, last},
                          [&](const Row& row) { sum = row.Int(0); });
    return ValueOrError(std::move(read), sum);
  }

  // Up to limit entries with first <= sequence < end, newest first.
  SqlResult<std::vector<Entry>> Read(int64_t first, int64_t end, std::optional<EntryKind> kind,
                                     int limit) {
    std::vector<Entry> entries;
    std::string text = "SELECT " + std::string(kEntryColumns) +
                       " FROM entry WHERE shard = $1 AND workspace = $2 AND sequence >= $3"
                       " AND sequence < $4";
    std::vector<sql::Param> params = {shard_, workspace_, first, end};
    // SQLite numbers parameters in the order of their first use in the text.
    if (kind) {
      text += " AND kind = $5";
      params.emplace_back(static_cast<int64_t>(*kind));
    }
    params.emplace_back(limit);
    text += " ORDER BY sequence DESC LIMIT $" + std::to_string(params.size());
    auto read = db_.Query(text, params, [&](const Row& row) { entries.push_back(ReadEntry(row)); });
    return ValueOrError(std::move(read), std::move(entries));
  }

 private:
  Connection& db_;
  const int32_t shard_;
  const std::string& workspace_;
};

SqlResult<std::vector<PostedEntry>> ReadPage(Connection& db, const EntryQuery& query) {
  std::vector<PostedEntry> page;
  Entries entries(db, query.workspace);
  int64_t newest = 0;
  int64_t balance = 0;
  TRY(entries.ReadHead(newest, balance));
  int64_t first = query.first_sequence;
  int64_t end = std::min(newest + 1, query.end_sequence);
  if (query.start_us > 0) {
    TRY(auto found, entries.FirstAt(query.start_us, newest));
    first = std::max(first, found);
  }
  if (query.end_us < INT64_MAX) {
    TRY(auto found, entries.FirstAt(query.end_us, newest));
    end = std::min(end, found);
  }
  // The balance after this entry is known; earlier balances are computed backwards from it.
  int64_t known = newest;
  if (query.after_sequence > 0) {
    end = std::min(end, query.after_sequence);
    known = query.after_sequence;
    balance = query.after_balance_nano_usd;
  }
  TRY(auto rows, entries.Read(first, end, query.kind, query.limit + 1));
  for (Entry& entry : rows) {
    TRY(auto changed, !page.empty() && known == entry.sequence + 1
                          ? SqlResult<int64_t>(PostedChange(page.back().entry))
                          : entries.SumOfChanges(entry.sequence, known));
    balance -= changed;
    known = entry.sequence;
    page.push_back({std::move(entry), balance});
  }
  return page;
}

}  // namespace

int64_t PostedChange(const Entry& entry) {
  const auto posted = [](Account account) {
    return account == Account::kPaid || account == Account::kGranted;
  };
  return (posted(entry.credit) ? entry.amount_nano_usd : 0) -
         (posted(entry.debit) ? entry.amount_nano_usd : 0);
}

SqlResult<std::vector<PostedEntry>> ReadTransactions(sql::Database& database,
                                                     const EntryQuery& query) {
  std::vector<PostedEntry> page;
  auto done = database.Transact(sql::TxMode::kRead, [&](Connection& db) -> SqlResult<void> {
    TRY(auto read, ReadPage(db, query));
    page = std::move(read);
    return {};
  });
  return ValueOrError(std::move(done), std::move(page));
}

SqlResult<std::optional<PostedEntry>> ReadTransaction(sql::Database& database,
                                                      const std::string& workspace,
                                                      int64_t sequence) {
  std::optional<PostedEntry> found;
  auto done = database.Transact(sql::TxMode::kRead, [&](Connection& db) -> SqlResult<void> {
    found.reset();
    Entries entries(db, workspace);
    int64_t newest = 0;
    int64_t balance = 0;
    TRY(entries.ReadHead(newest, balance));
    TRY(auto rows, entries.Read(sequence, sequence + 1, std::nullopt, 1));
    if (rows.empty()) return {};
    TRY(auto changed, entries.SumOfChanges(sequence, newest));
    found = PostedEntry{std::move(rows.front()), balance - changed};
    return {};
  });
  return ValueOrError(std::move(done), std::move(found));
}

SqlResult<std::vector<Entry>> ReadRequestEntries(Connection& db, const std::string& workspace,
                                                 const Id& id, int64_t first_us, int64_t last_us) {
  std::vector<Entry> found;
  Entries entries(db, workspace);
  int64_t newest = 0;
  int64_t balance = 0;
  TRY(entries.ReadHead(newest, balance));
  TRY(auto first, entries.FirstAt(first_us, newest));
  TRY(auto end, entries.FirstAt(last_us + 1, newest));
  static const std::string kText = "SELECT " + std::string(kEntryColumns) +
                                   " FROM entry WHERE shard = $1 AND workspace = $2"
                                   " AND sequence >= $3 AND sequence < $4 AND request = $5"
                                   " ORDER BY sequence";
  const std::string bytes = id.ToBytes();
  auto read =
      db.Query(kText, {LedgerShard(workspace), workspace, first, end, sql::Param::Blob(bytes)},
               [&](const Row& row) { found.push_back(ReadEntry(row)); });
  if (read.ok() && found.empty()) {
    // Bisection fails if times are not in order, so this filters by time alone.
    static const std::string kByTime = "SELECT " + std::string(kEntryColumns) +
                                       " FROM entry WHERE shard = $1 AND workspace = $2"
                                       " AND at_us >= $3 AND at_us <= $4 AND request = $5"
                                       " ORDER BY sequence";
    read = db.Query(kByTime,
                    {LedgerShard(workspace), workspace, first_us, last_us, sql::Param::Blob(bytes)},
                    [&](const Row& row) { found.push_back(ReadEntry(row)); });
  }
  return ValueOrError(std::move(read), std::move(found));
}

SqlResult<std::optional<Command>> ReadCommandById(sql::Database& database,
                                                  const std::string& workspace,
                                                  const std::string& command_id) {
  std::optional<Command> found;
  static const std::string kText = "SELECT " + std::string(kCommandColumns) +
                                   " FROM command WHERE shard = $1 AND workspace = $2"
                                   " AND id = $3";
  auto done = database.Transact(sql::TxMode::kRead, [&](Connection& db) {
    found.reset();
    return db.Query(kText, {LedgerShard(workspace), workspace, command_id},
                    [&](const Row& row) { found = ReadCommand(row); });
  });
  return ValueOrError(std::move(done), std::move(found));
}

SqlResult<std::vector<Command>> ReadCommands(sql::Database& database, const CommandQuery& query) {
  std::vector<Command> commands;
  std::string text = "SELECT " + std::string(kCommandColumns) + " FROM command WHERE kind IN (";
  for (const CommandKind kind : query.kinds) {
    if (text.back() != '(') text += ", ";
    text += std::to_string(static_cast<int>(kind));
  }
  text += ")";
  std::vector<sql::Param> params;
  const auto next = [&](sql::Param value) {
    params.push_back(value);
    return "$" + std::to_string(params.size());
  };
  if (!query.workspace.empty()) {
    text += " AND shard = " + next(LedgerShard(query.workspace));
    text += " AND workspace = " + next(query.workspace);
  }
  if (query.state) {
    text += " AND state = " + std::to_string(static_cast<int>(*query.state));
  }
  if (!query.after_id.empty()) {
    const std::string at = next(query.after_us);
    text +=
        " AND (at_us < " + at + " OR (at_us = " + at + " AND id < " + next(query.after_id) + "))";
  }
  text += " ORDER BY at_us DESC, id DESC LIMIT " + next(query.limit + 1);
  auto done = database.Transact(sql::TxMode::kRead, [&](Connection& db) {
    commands.clear();
    return db.Query(text, params, [&](const Row& row) { commands.push_back(ReadCommand(row)); });
  });
  return ValueOrError(std::move(done), std::move(commands));
}

SqlResult<bool> HasWallet(sql::Database& database, const std::string& workspace) {
  bool found = false;
  auto done = database.Transact(sql::TxMode::kRead, [&](Connection& db) {
    found = false;
    return db.Query("SELECT sequence FROM wallet WHERE shard = $1 AND workspace = $2",
                    {LedgerShard(workspace), workspace}, [&](const Row&) { found = true; });
  });
  return ValueOrError(std::move(done), found);
}

}  // namespace tollgate::billing
