// Tables of the ledger. A row is written by one function and read by one, in one column order.
#pragma once

#include <span>
#include <string_view>

#include "common/sql/sql.h"
#include "services/billing/domain/types.h"

namespace tollgate::billing {

inline constexpr std::string_view kSchemaComponent = "billing";
std::span<const sql::Migration> Migrations();

// Column lists for SELECT and INSERT, and how many columns they have.
inline constexpr std::string_view kWalletColumns =
    "workspace, paid, granted, held, open_holds, cap, frozen, sequence, head, clock_us";
inline constexpr int kWalletCount = 10;
inline constexpr std::string_view kMonthColumns = "id, workspace, month, spent, held";
inline constexpr int kMonthCount = 5;
inline constexpr std::string_view kHoldColumns =
    "id, workspace, state, key_id, model, input_pico, output_pico, price_version, prompt_bound, "
    "output_bound, month, cap, first_authorized, authorized, created_us, expires_us, sequence, "
    "prompt, cached, cache_write, completion, reasoning, outcome, cut_by_credit, estimated, "
    "engine, "
    "charged, charged_granted, overrun, closed_us";
inline constexpr int kHoldCount = 30;
inline constexpr std::string_view kEntryColumns =
    "workspace, sequence, kind, request, debit, credit, amount, month, at_us, memo, hash";
inline constexpr int kEntryCount = 11;
inline constexpr std::string_view kCommandColumns =
    "id, workspace, command, kind, amount, granted, cap, at_us";
inline constexpr int kCommandCount = 8;
inline constexpr std::string_view kUsageColumns =
    "id, workspace, key_id, model, engine, month, day, admitted_us, closed_us, prompt, cached, "
    "cache_write, completion, reasoning, input_pico, output_pico, price_version, cost_pico, "
    "charged, "
    "overrun, state, outcome, cut_by_credit, estimated";
inline constexpr int kUsageCount = 24;

Wallet ReadWallet(const sql::Row& row);
Month ReadMonth(const sql::Row& row);
Hold ReadHold(const sql::Row& row);
Entry ReadEntry(const sql::Row& row);
Command ReadCommand(const sql::Row& row);

// The rows of one Connection::ExecuteRows. Owns the strings that it makes (keys, ids); the caller
// must keep the added rows alive.
class Cells {
 public:
  explicit Cells(size_t rows, int columns) { cells_.reserve(rows * columns); }
  void Add(const Wallet& wallet);
  void Add(const Month& month);
  void Add(const Hold& hold);
  void Add(const Entry& entry);
  void Add(const Command& command);
  // The usage record of a closed hold.
  void AddUsage(const Hold& hold);
  std::span<const sql::Param> view() const { return cells_; }

 private:
  std::string_view Keep(std::string text);

  std::vector<sql::Param> cells_;
  std::vector<std::unique_ptr<std::string>> kept_;
};

}  // namespace tollgate::billing
