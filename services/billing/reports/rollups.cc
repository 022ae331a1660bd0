#include "services/billing/reports/rollups.h"

#include <memory>
#include <set>
#include <vector>

#include "common/base/clock.h"
#include "common/base/ledger_shard.h"
#include "common/base/time_units.h"
#include "common/base/try.h"
#include "services/billing/reports/rollup_changes.h"
#include "services/billing/storage/rollup_tables.h"
#include "services/billing/storage/row_texts.h"
#include "services/billing/storage/schema.h"
#include "services/billing/storage/statement_closes.h"
#include "services/billing/verify/verify_state.h"

namespace tollgate::billing {
namespace {

using sql::Connection;
using sql::Param;
using sql::Row;
using sql::SqlResult;

constexpr int64_t kQuartersOfDay = kDayUs / kQuarterUs;
// Longer than a request can be corrected.
constexpr int64_t kKeepExpiredUs = 8 * kDayUs;

constexpr std::string_view kFigures =
    "requests, free_requests, prompt, cached, cache_write, completion, reasoning, charged, overrun";
constexpr int kWorkspaceRollUpCount = 13;
// If there are more, they are read with one query that includes all quarters between them.
constexpr size_t kFewQuarters = 8;

std::string SumOfFigures() {
  std::string text;
  for (std::string_view rest = kFigures; !rest.empty();) {
    const size_t comma = rest.find(", ");
    text += ", CAST(sum(" + std::string(rest.substr(0, comma)) + ") AS BIGINT)";
    rest = comma == std::string_view::npos ? "" : rest.substr(comma + 2);
  }
  return text;
}

// Reads the columns starting with this one.
UsageChange ReadFigures(const Row& row, int first) {
  UsageChange sums;
  sums.requests = row.Int(first);
  sums.free_requests = row.Int(first + 1);
  sums.usage = {row.Int(first + 2), row.Int(first + 3), row.Int(first + 4), row.Int(first + 5),
                row.Int(first + 6)};
  sums.charged_nano_usd = row.Int(first + 7);
  sums.overrun_nano_usd = row.Int(first + 8);
  return sums;
}

using Periods = std::map<std::pair<int64_t, std::string>, UsageChange>;  // by period, model
using KeySpends = std::map<std::pair<int64_t, std::string>, int64_t>;    // by period, key

// One step of one workspace.
class Fold {
 public:
  Fold(Connection& db, const std::string& workspace, int64_t now_us)
      : db_(db), workspace_(workspace), shard_(LedgerShard(workspace)), now_us_(now_us) {}

  SqlResult<bool> Run(int limit) {
    TRY(Read(limit));
    const bool behind = changes_.last != cut_.sequence || changes_.last != cut_.receivables;
    if (!begin_ && !changes_.gap && !waited_ && !behind && !close_) return false;
    TRY(auto tx, sql::Transaction::Begin(db_));
    auto mine = MoveCut();
    // Another process was faster: the caller reads the remaining work again.
    if (!mine.ok()) return Fail{std::move(mine).error()};
    if (!*mine) return true;
    TRY(changes_.gap ? Reset() : begin_ ? Begin() : Save());
    TRY(tx.Commit());
    return begin_ || changes_.gap || changes_.more;
  }

 private:
  // Reads everything to add, in one snapshot and without a lock.
  SqlResult<void> Read(int limit) {
    TRY(auto snapshot, sql::Transaction::Begin(db_, sql::TxMode::kRead));
    TRY(auto cut, ReadRollUpCut(db_, workspace_));
    if (!cut) return CheckWallet();
    cut_ = *cut;
    TRY(auto changes, ReadRollUpChanges(db_, workspace_, cut_.sequence, limit));
    changes_ = std::move(changes);
    if (changes_.last == cut_.sequence) {
      TRY(CheckNewest());
    }
    for (const RequestChange& request : changes_.requests) Add(request);
    TRY(auto late, ReadLateReceivables(db_, workspace_, cut_));
    for (const auto& [row, moved] : late) changes_.movements[row] += moved;
    TRY(ReadClose());
    return ReadStale();
  }

  // Decides whether this step closes months.
  SqlResult<void> ReadClose() {
    const StatementClose newest = changes_.closes.newest();
    StatementClose close = {LastClosableMonth(now_us_), changes_.last, now_us_};
    if (changes_.more || changes_.gap || newest.sequence >= close.sequence ||
        newest.month >= close.month) {
      return {};
    }
    // Archived months stay as the archive saw them.
    bool archived = false;
    TRY(
        db_.Query("SELECT 1 FROM archive_workspace WHERE shard = $1 AND workspace = $2"
                  " AND month >= $3",
                  {shard_, workspace_, close.month}, [&](const Row&) { archived = true; }));
    if (!archived) close_ = close;
    return {};
  }

  // A workspace without a wallet has no entries and gets no roll-ups.
  SqlResult<void> CheckWallet() {
    return db_.Query("SELECT 1 FROM wallet WHERE shard = $1 AND workspace = $2",
                     {shard_, workspace_}, [&](const Row&) { begin_ = true; });
  }

  // There is no entry after the cut: none was made, or an archive has removed them.
  SqlResult<void> CheckNewest() {
    return db_.Query("SELECT sequence FROM wallet WHERE shard = $1 AND workspace = $2",
                     {shard_, workspace_},
                     [&](const Row& row) { changes_.gap = row.Int(0) > cut_.sequence; });
  }

  void Add(const RequestChange& request) {
    if (request.admitted_us < cut_.base_us) return;
    const int64_t quarter = request.admitted_us / kQuarterUs;
    const int32_t day = UtcDay(request.admitted_us);
    if (request.ended) {
      quarters_[{quarter, request.model}] += request.sums;
      days_[{day, request.model}] += request.sums;
    } else if (request.corrected) {
      stale_.insert({quarter, request.model});
    }
    if (!request.ended && request.charged_nano_usd == 0) return;
    key_days_[{day, request.key_id}] += request.charged_nano_usd;
    key_months_[{UtcMonth(request.admitted_us), request.key_id}] += request.charged_nano_usd;
  }

  // The sums of a request before its correction are unknown, so the sums of its quarter of an hour
  // are recomputed from those of the keys. Such requests are rare. The keys' sums include the
  // newest entry, so the quarters wait until the cut has reached it.
  SqlResult<void> ReadStale() {
    if (changes_.more) return {};
    auto waiting =
        db_.Query("SELECT period, model FROM rollup_stale WHERE shard = $1 AND workspace = $2",
                  {shard_, workspace_}, [&](const Row& row) {
                    stale_.emplace(row.Int(0), row.Text(1));
                    waited_ = true;
                  });
    if (!waiting.ok() || stale_.empty()) return waiting;
    static const std::string kText =
        "SELECT period, model" + SumOfFigures() +
        " FROM usage_quarter WHERE shard = $1 AND workspace = $2 AND period >= $3 AND period <= $4"
        " AND (key_id, model) IN (SELECT DISTINCT key_id, model FROM usage_day WHERE shard = $1"
        " AND workspace = $2) GROUP BY period, model";
    const auto add = [&](const Row& row) {
      std::pair<int64_t, std::string> period(row.Int(0), row.Text(1));
      if (stale_.contains(period)) anew_.emplace(std::move(period), ReadFigures(row, 2));
    };
    std::set<int64_t> quarters;
    for (const auto& [quarter, model] : stale_) quarters.insert(quarter);
    if (quarters.size() > kFewQuarters) {
      return db_.Query(kText, {shard_, workspace_, *quarters.begin(), *quarters.rbegin()}, add);
    }
    for (const int64_t quarter : quarters) {
      TRY(db_.Query(kText, {shard_, workspace_, quarter, quarter}, add));
    }
    return {};
  }

  // Returns false if another process has moved the cut.
  SqlResult<bool> MoveCut() {
    if (begin_) {
      auto made = db_.Execute(
          "INSERT INTO rollup_cut (shard, workspace, sequence, base_us) VALUES ($1, $2, 0, 0)",
          {shard_, workspace_});
      if (!made.ok() && made.error().kind == sql::ErrorKind::kUnique) return false;
      if (!made.ok()) return Fail{std::move(made).error()};
      return true;
    }
    TRY(auto moved,
        db_.Execute("UPDATE rollup_cut SET sequence = $1, receivables = $1 WHERE shard = $2"
                    " AND workspace = $3 AND sequence = $4 AND receivables = $5",
                    {changes_.last, shard_, workspace_, cut_.sequence, cut_.receivables}));
    if (moved != 1) return false;
    // A month that another process has closed takes no further entries.
    TRY(auto closes, ReadStatementCloses(db_, workspace_));
    return closes.newest().month == changes_.closes.newest().month;
  }

  // The next step begins again.
  SqlResult<void> Reset() {
    TRY(Clear());
    return WithoutValue(db_.Execute("DELETE FROM rollup_cut WHERE shard = $1 AND workspace = $2",
                                    {shard_, workspace_}));
  }

  // Removes all roll-ups except the cut.
  SqlResult<void> Clear() {
    for (const std::string_view table : kRollUpNames) {
      if (table == "rollup_cut") continue;
      TRY(db_.Execute("DELETE FROM " + std::string(table) + " WHERE shard = $1 AND workspace = $2",
                      {shard_, workspace_}));
    }
    return {};
  }

  // Archived entries are not read. Usage of an archived month no longer changes, so requests
  // admitted in one come from the roll-ups by key, whenever they ended.
  SqlResult<void> Begin() {
    // Roll-ups without a cut would be counted twice.
    TRY(Clear());
    std::optional<WorkspaceState> archived;
    auto read = db_.Query("SELECT state FROM archive_workspace WHERE shard = $1 AND workspace = $2",
                          {shard_, workspace_},
                          [&](const Row& row) { archived = DecodeState(row.Bytes(0)); });
    if (!read.ok() || !archived) return read;
    TRY(db_.Execute(
        "UPDATE rollup_cut SET sequence = $1, base_us = $2, receivables = $1 WHERE shard = $3"
        " AND workspace = $4",
        {archived->sequence, archived->cut_us, shard_, workspace_}));
    const int64_t posted = archived->sums[static_cast<size_t>(Account::kPaid)] +
                           archived->sums[static_cast<size_t>(Account::kGranted)];
    changes_.movements[{0, 0}].posted_nano_usd = posted;
    for (const auto& [id, hold] : archived->holds) {
      if (hold.charged > 0) changes_.expired.emplace_back(id, hold.closed_us);
    }
    for (const auto& [table, from, period_us] :
         {std::tuple("workspace_quarter", "usage_quarter", kQuarterUs),
          std::tuple("workspace_day", "usage_day", kDayUs)}) {
      TRY(db_.Execute("INSERT INTO " + std::string(table) + " (shard, workspace, period, model, " +
                          std::string(kFigures) + ") SELECT shard, workspace, period, model" +
                          SumOfFigures() + " FROM " + from +
                          " WHERE shard = $1 AND workspace = $2 AND period < $3"
                          " GROUP BY shard, workspace, period, model",
                      {shard_, workspace_, archived->cut_us / period_us}));
    }
    TRY(BeginKeySpends(archived->cut_us));
    return Save();
  }

  SqlResult<void> BeginKeySpends(int64_t cut_us) {
    return db_.Query(
        "SELECT period, key_id, CAST(sum(charged) AS BIGINT) FROM usage_day WHERE shard = $1"
        " AND workspace = $2 AND period < $3 GROUP BY period, key_id",
        {shard_, workspace_, cut_us / kDayUs}, [&](const Row& row) {
          key_days_[{row.Int(0), row.Text(1)}] += row.Int(2);
          key_months_[{UtcMonth(row.Int(0) * kDayUs), row.Text(1)}] += row.Int(2);
        });
  }

  SqlResult<void> Save() {
    for (const auto& save : {&Fold::SaveUsage, &Fold::SaveKeySpends, &Fold::SaveStatements}) {
      TRY((this->*save)());
    }
    if (close_) TRY(CloseStatements(db_, workspace_, *close_));
    return SaveExpired();
  }

  SqlResult<void> SaveUsage() {
    TRY(Write("workspace_quarter", quarters_, true));
    TRY(Write("workspace_day", days_, true));
    if (changes_.more) return SaveStale();
    if (waited_) {
      TRY(db_.Execute("DELETE FROM rollup_stale WHERE shard = $1 AND workspace = $2",
                      {shard_, workspace_}));
    }
    TRY(Write("workspace_quarter", anew_, false));
    // Computed after the quarters of the day.
    static const std::string kText = "SELECT model" + SumOfFigures() +
                                     " FROM workspace_quarter WHERE shard = $1 AND workspace = $2"
                                     " AND period >= $3 AND period < $4 GROUP BY model";
    std::set<int64_t> stale;
    for (const auto& [period, sums] : anew_) stale.insert(period.first / kQuartersOfDay);
    Periods days;
    for (const int64_t day : stale) {
      TRY(db_.Query(
          kText, {shard_, workspace_, day * kQuartersOfDay, (day + 1) * kQuartersOfDay},
          [&](const Row& row) { days.emplace(std::pair(day, row.Text(0)), ReadFigures(row, 1)); }));
    }
    return Write("workspace_day", days, false);
  }

  SqlResult<void> SaveStale() {
    std::vector<Param> cells;
    for (const auto& [quarter, model] : stale_) {
      cells.insert(cells.end(), {shard_, workspace_, quarter, model});
    }
    return Write(Insert("shard, workspace, period, model", "rollup_stale"), 4, cells,
                 "ON CONFLICT (shard, workspace, period, model) DO NOTHING");
  }

  SqlResult<void> Write(const std::string& table, const Periods& periods, bool add) {
    std::vector<Param> cells;
    for (const auto& [period, c] : periods) {
      cells.insert(cells.end(),
                   {shard_, workspace_, period.first, period.second, c.requests, c.free_requests,
                    c.usage.prompt, c.usage.cached, c.usage.cache_write, c.usage.completion,
                    c.usage.reasoning, c.charged_nano_usd, c.overrun_nano_usd});
    }
    constexpr std::string_view kKey = "shard, workspace, period, model";
    return Write(Insert(std::string(kKey) + ", " + std::string(kFigures), table),
                 kWorkspaceRollUpCount, cells,
                 add ? AddUp(table, kKey, kFigures) : Update(kKey, kFigures));
  }

  SqlResult<void> SaveKeySpends() {
    constexpr std::string_view kKey = "shard, workspace, period, key_id";
    for (const auto& [table, spends] :
         {std::pair("key_spend_day", &key_days_), std::pair("key_spend_month", &key_months_)}) {
      std::vector<Param> cells;
      for (const auto& [row, charged] : *spends) {
        cells.insert(cells.end(), {shard_, workspace_, row.first, row.second, charged});
      }
      TRY(Write(Insert("shard, workspace, period, key_id, charged", table), 5, cells,
                AddUp(table, kKey, "charged")));
    }
    return {};
  }

  SqlResult<void> SaveStatements() {
    std::vector<Param> months;
    for (const auto& [row, moved] : changes_.movements) {
      months.insert(months.end(), {shard_, workspace_, row.first, row.second, moved.posted_nano_usd,
                                   moved.receivable_nano_usd});
    }
    TRY(Write(Insert("shard, workspace, month, kind, amount, receivable", "statement_month"), 6,
              months,
              AddUp("statement_month", "shard, workspace, month, kind", "amount, receivable")));
    std::vector<Param> usage;
    for (const auto& [row, line] : changes_.usage) {
      const auto& [month, key, model] = row;
      usage.insert(usage.end(),
                   {shard_, workspace_, month, key, model, line.requests, line.amount_nano_usd});
    }
    return Write(
        Insert("shard, workspace, month, key_id, model, requests, amount", "statement_usage"), 7,
        usage,
        AddUp("statement_usage", "shard, workspace, month, key_id, model", "requests, amount"));
  }

  SqlResult<void> SaveExpired() {
    if (changes_.expired.empty()) return {};
    std::vector<Param> cells;
    int64_t newest_us = 0;
    for (const auto& [id, at_us] : changes_.expired) {
      cells.insert(cells.end(), {shard_, workspace_, Param::Blob(id), at_us});
      newest_us = std::max(newest_us, at_us);
    }
    TRY(Write(Insert("shard, workspace, id, at_us", "expired_charge"), 4, cells, ""));
    TRY(db_.Execute("DELETE FROM expired_charge WHERE shard = $1 AND workspace = $2 AND at_us < $3",
                    {shard_, workspace_, newest_us - kKeepExpiredUs}));
    return {};
  }

  SqlResult<void> Write(const std::string& head, int columns, const std::vector<Param>& cells,
                        const std::string& tail) {
    if (cells.empty()) return {};
    TRY(db_.ExecuteRows(head, columns, cells, tail));
    return {};
  }

  Connection& db_;
  const std::string& workspace_;
  const int32_t shard_;
  const int64_t now_us_;
  bool begin_ = false;  // no roll-ups yet
  RollUpCut cut_;
  RollUpChanges changes_;
  std::optional<StatementClose> close_;
  Periods quarters_, days_;
  std::set<std::pair<int64_t, std::string>> stale_;  // period and model of quarters to recompute
  bool waited_ = false;                              // some of them are in rollup_stale
  Periods anew_;
  KeySpends key_days_, key_months_;
};

}  // namespace

SqlResult<bool> FoldEntries(Connection& db, const std::string& workspace, int limit,
                            int64_t now_us) {
  return Fold(db, workspace, now_us).Run(limit);
}

}  // namespace tollgate::billing
