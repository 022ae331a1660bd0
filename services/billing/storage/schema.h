// Tables of the ledger. Each table has one function that writes rows and one that reads them, with
// the same column order.
#pragma once

#include <span>
#include <string_view>

#include "common/sql/sql.h"
#include "services/billing/domain/types.h"

namespace tollgate::billing {

inline constexpr std::string_view kSchemaComponent = "billing";
std::span<const sql::Migration> Migrations();

// Column lists for SELECT and INSERT, and their number of columns.
inline constexpr std::string_view kWalletColumns =
    "shard, workspace, paid, granted, held, receivable, open_holds, cap, frozen, sequence, head, "
    "clock_us, leased, leases";
inline constexpr int kWalletCount = 14;
inline constexpr std::string_view kMonthColumns = "shard, workspace, month, spent, held";
inline constexpr int kMonthCount = 5;
inline constexpr std::string_view kKeyMonthColumns = "shard, workspace, key_id, month, spent, held";
inline constexpr int kKeyMonthCount = 6;
inline constexpr std::string_view kHoldColumns =
    "shard, id, workspace, state, key_id, model, input_pico, output_pico, price_version, "
    "prompt_bound, output_bound, month, cap, key_quota, surface, streamed, client_request_id, "
    "idempotency_key_digest, attempt, first_authorized, authorized, created_us, expires_us, "
    "sequence, prompt, cached, cache_write, completion, reasoning, outcome, cut_by_credit, "
    "estimated, engine, charged, charged_granted, overrun, closed_us, first_token_us, "
    "candidates, candidate, quota_keys";
inline constexpr int kHoldCount = 41;
inline constexpr std::string_view kEntryColumns =
    "shard, workspace, sequence, kind, request, debit, credit, amount, month, at_us, memo, detail, "
    "hash";
inline constexpr int kEntryCount = 13;
inline constexpr std::string_view kCommandColumns =
    "shard, workspace, id, kind, amount, granted, cap, at_us, state, actor, reason, reference, "
    "decided_by, decided_us";
inline constexpr int kCommandCount = 14;
inline constexpr std::string_view kUsageColumns =
    "shard, id, workspace, key_id, model, engine, surface, streamed, client_request_id, month, "
    "day, "
    "admitted_us, closed_us, first_token_us, prompt, cached, cache_write, completion, reasoning, "
    "input_pico, output_pico, price_version, cost_pico, charged, overrun, state, outcome, "
    "cut_by_credit, estimated";
inline constexpr int kUsageCount = 29;
// Columns of usage_quarter, where the period is a quarter of an hour, and of usage_day, where it is
// a UTC day.
inline constexpr std::string_view kRollUpColumns =
    "shard, workspace, key_id, model, period, requests, free_requests, prompt, cached, "
    "cache_write, "
    "completion, reasoning, charged, overrun";
inline constexpr int kRollUpCount = 14;
// Length of a period of usage_quarter (decision 53).
inline constexpr int64_t kQuarterUs = 900LL * 1'000'000;

// PostgreSQL: creates the partitions of the months around this time, and of all months since
// since_month (YYYYMM; 0: only those around now_us). Cheap if they exist. SQLite has no partitions.
sql::SqlResult<void> EnsurePartitions(sql::Connection& connection, int64_t now_us,
                                      int32_t since_month = 0);

Wallet ReadWallet(const sql::Row& row);
Month ReadMonth(const sql::Row& row);
KeyMonth ReadKeyMonth(const sql::Row& row);
Hold ReadHold(const sql::Row& row);
Entry ReadEntry(const sql::Row& row);
Command ReadCommand(const sql::Row& row);

// Rows for one Connection::ExecuteRows. Owns the strings that it creates (keys, ids); the caller
// must keep the added rows alive.
class Cells {
 public:
  explicit Cells(size_t rows, int columns) { cells_.reserve(rows * columns); }
  void Add(const Wallet& wallet);
  void Add(const Month& month);
  void Add(const KeyMonth& month);
  void Add(const Hold& hold);
  void Add(const Entry& entry);
  void Add(const Command& command);
  // Adds the usage record of a closed hold.
  void AddUsage(const Hold& hold);
  // Adds a row of a roll-up.
  void AddRollUp(const UsageChange& change, int64_t period);
  std::span<const sql::Param> view() const { return cells_; }

 private:
  std::string_view Keep(std::string text);

  std::vector<sql::Param> cells_;
  std::vector<std::unique_ptr<std::string>> kept_;
};

}  // namespace tollgate::billing
