#include "services/billing/statement/statement.h"

#include <algorithm>
#include <map>

#include "common/base/clock.h"
#include "common/base/ledger_shard.h"
#include "common/base/try.h"
#include "common/base/utc_text.h"
#include "common/money/money.h"
#include "services/billing/domain/types.h"
#include "services/billing/reports/rollup_changes.h"
#include "services/billing/storage/statement_closes.h"
#include "services/billing/verify/verify_state.h"

namespace tollgate::billing {
namespace {

using sql::Row;
using sql::SqlResult;

std::string NameOf(EntryKind kind) {
  switch (kind) {
    case EntryKind::kTopup:
      return "Top-ups";
    case EntryKind::kGrant:
      return "Granted credit";
    case EntryKind::kCharge:
    case EntryKind::kLateCorrection:
      return kUsageLine;
    case EntryKind::kRefund:
      return "Refunds";
    case EntryKind::kRefundFailed:
      return "Refunds that could not be paid out";
    case EntryKind::kCreditAdjustment:
      return "Adjustments in your favour";
    case EntryKind::kDebitAdjustment:
      return "Adjustments to your debit";
    case EntryKind::kChargeback:
      return "Chargebacks";
    case EntryKind::kChargebackWon:
      return "Chargebacks taken back";
    case EntryKind::kReceivablePaid:
      return "Paid for earlier chargebacks";
    case EntryKind::kWriteOff:
      return "Written off";
    default:
      return std::string(EntryKindName(kind));
  }
}

using UsageLines = std::map<std::string, StatementUsage>;  // by model or key

// Reads the statement of one month, or of all months up to it, from the roll-ups and the entries
// after their cut (ADR 0025).
class Reader {
 public:
  Reader(sql::Connection& db, const std::string& workspace, int32_t month, int64_t now_us)
      : db_(db), shard_(LedgerShard(workspace)), closable_(LastClosableMonth(now_us)) {
    statement_.workspace = workspace;
    statement_.month = month;
  }

  SqlResult<Statement> Read() {
    TRY(ReadArchive());
    TRY(ReadRollUps(/*usage=*/true));
    if (first_us_ > UtcMonthStartUs(statement_.month)) {
      return sql::Refused("month " + std::to_string(statement_.month) +
                          " is archived; its entries are in the files of the archive");
    }
    TRY(CheckWallet());
    Move(statement_);
    int64_t used = 0;
    for (const StatementLine& line : statement_.movements) {
      if (line.name == kUsageLine) used = -line.amount_nano_usd;
    }
    statement_.by_model = LinesOf(models_);
    statement_.by_key = LinesOf(keys_);
    const auto total = [](const std::vector<StatementLine>& lines) {
      int64_t all = 0;
      for (const StatementLine& line : lines) all += line.amount_nano_usd;
      return all;
    };
    if (total(statement_.by_model) != used || total(statement_.by_key) != used) {
      return sql::Refused(Contradiction());
    }
    return std::move(statement_);
  }

  // All statements up to the reader's month.
  SqlResult<std::vector<Statement>> ReadAll() {
    TRY(ReadArchive());
    TRY(ReadRollUps(/*usage=*/false));
    TRY(CheckWallet());
    int32_t month = statement_.month;
    // Month 0 has the archived movements.
    const auto first = movements_.lower_bound({1, 0});
    if (first != movements_.end()) month = std::min(month, first->first.first);
    if (first_us_ > 0) month = std::min(statement_.month, UtcMonth(first_us_));
    std::vector<Statement> statements;
    for (; month <= statement_.month; month = NextMonth(month)) {
      Statement& one = statements.emplace_back();
      one.workspace = statement_.workspace;
      one.month = month;
      Move(one);
    }
    return statements;
  }

 private:
  std::string Contradiction() const {
    return "the entries of " + statement_.workspace +
           " contradict each other; run tollgate verify-ledger";
  }

  // Reads up to when the entries are archived.
  SqlResult<void> ReadArchive() {
    return db_.Query("SELECT state FROM archive_workspace WHERE shard = $1 AND workspace = $2",
                     {shard_, statement_.workspace}, [&](const Row& row) {
                       const auto state = DecodeState(row.Bytes(0));
                       if (!state) return;
                       first_us_ = state->cut_us;
                       archived_ = state->sequence;
                       archived_nano_usd_ = state->sums[static_cast<size_t>(Account::kPaid)] +
                                            state->sums[static_cast<size_t>(Account::kGranted)];
                     });
  }

  // usage: also reads the usage lines of the reader's month.
  SqlResult<void> ReadRollUps(bool usage) {
    TRY(auto cut, ReadRollUpCut(db_, statement_.workspace));
    int64_t sequence = archived_;
    // Roll-ups that are still being built start after the archive.
    if (cut && cut->sequence >= archived_) {
      sequence = cut->sequence;
      // They keep archived months, unless they were built again after the archive.
      first_us_ = cut->base_us;
      auto read = db_.Query(
          "SELECT month, kind, amount, receivable FROM statement_month WHERE shard = $1"
          " AND workspace = $2",
          {shard_, statement_.workspace}, [&](const Row& row) {
            movements_[{static_cast<int32_t>(row.Int(0)), row.Int(1)}] +=
                Movement{row.Int(2), row.Int(3)};
          });
      if (read.ok() && usage) read = ReadUsage();
      if (!read.ok()) return read;
      TRY(auto late, ReadLateReceivables(db_, statement_.workspace, *cut));
      for (const auto& [row, moved] : late) movements_[row] += moved;
    } else {
      movements_[{0, 0}].posted_nano_usd = archived_nano_usd_;
    }
    return ReadEntries(sequence);
  }

  SqlResult<void> ReadUsage() {
    return db_.Query(
        "SELECT key_id, model, requests, amount FROM statement_usage WHERE shard = $1"
        " AND workspace = $2 AND month = $3",
        {shard_, statement_.workspace, statement_.month},
        [&](const Row& row) { AddUsage(row.Text(0), row.Text(1), {row.Int(2), row.Int(3)}); });
  }

  // Reads the entries after this one.
  SqlResult<void> ReadEntries(int64_t sequence) {
    for (bool more = true; more;) {
      TRY(auto changes, ReadRollUpChanges(db_, statement_.workspace, sequence, kMostFreshEntries));
      if (changes.gap) return sql::Refused(Contradiction());
      for (const auto& [row, moved] : changes.movements) movements_[row] += moved;
      for (const auto& [row, line] : changes.usage) {
        const auto& [month, key, model] = row;
        if (month == statement_.month) AddUsage(key, model, line);
      }
      more = changes.more;
      sequence = changes.last;
      const StatementClose close = changes.closes.newest();
      // While no entry follows, there is nothing to close.
      closed_ = sequence == close.sequence ? std::max(closable_, close.month) : close.month;
    }
    return {};
  }

  void AddUsage(const std::string& key, const std::string& model, const StatementUsage& line) {
    for (StatementUsage* sum : {&keys_[key], &models_[model]}) {
      sum->requests += line.requests;
      sum->amount_nano_usd += line.amount_nano_usd;
    }
  }

  // The sum of all movements must equal the wallet. What was owed at the end of an archive is in no
  // movement.
  SqlResult<void> CheckWallet() {
    Movement rest;
    TRY(db_.Query(
        "SELECT paid + granted, receivable FROM wallet WHERE shard = $1"
        " AND workspace = $2",
        {shard_, statement_.workspace}, [&](const Row& row) { rest = {row.Int(0), row.Int(1)}; }));
    receivable_nano_usd_ = rest.receivable_nano_usd;
    for (const auto& [row, moved] : movements_) {
      rest.posted_nano_usd -= moved.posted_nano_usd;
      rest.receivable_nano_usd -= moved.receivable_nano_usd;
    }
    if (rest.posted_nano_usd != 0 || (archived_ == 0 && rest.receivable_nano_usd != 0)) {
      return sql::Refused(Contradiction());
    }
    return {};
  }

  // Sets balances and movements of the statement's month.
  void Move(Statement& statement) const {
    std::map<std::string, Movement> lines;
    statement.closing_receivable_nano_usd = receivable_nano_usd_;
    for (const auto& [row, moved] : movements_) {
      const auto& [month, kind] = row;
      if (month < statement.month) statement.opening_nano_usd += moved.posted_nano_usd;
      if (month == statement.month) lines[NameOf(static_cast<EntryKind>(kind))] += moved;
      if (month > statement.month) {
        statement.closing_receivable_nano_usd -= moved.receivable_nano_usd;
      }
    }
    statement.closing_nano_usd = statement.opening_nano_usd;
    statement.opening_receivable_nano_usd = statement.closing_receivable_nano_usd;
    for (const auto& [name, moved] : lines) {
      statement.closing_nano_usd += moved.posted_nano_usd;
      statement.opening_receivable_nano_usd -= moved.receivable_nano_usd;
      AddLine(name, moved.posted_nano_usd, statement.movements);
      AddLine(name, moved.receivable_nano_usd, statement.receivable_movements);
    }
    const bool begun = !movements_.empty() && movements_.begin()->first.first <= statement.month;
    if (begun && statement.month <= closed_) {
      statement.number = statement.workspace + "-" + UtcMonthText(statement.month);
    }
  }

  static void AddLine(const std::string& name, int64_t amount_nano_usd,
                      std::vector<StatementLine>& lines) {
    if (amount_nano_usd != 0) lines.push_back({name, 0, amount_nano_usd});
  }

  static std::vector<StatementLine> LinesOf(const UsageLines& usage) {
    std::vector<StatementLine> lines;
    for (const auto& [name, sum] : usage) {
      if (sum != StatementUsage()) lines.push_back({name, sum.requests, sum.amount_nano_usd});
    }
    return lines;
  }

  sql::Connection& db_;
  const int32_t shard_;
  const int32_t closable_;
  int64_t first_us_ = 0;  // beginning of the first month with a statement; 0: that of the chain
  int64_t archived_ = 0;
  int64_t archived_nano_usd_ = 0;
  int64_t receivable_nano_usd_ = 0;  // now
  int32_t closed_ = 0;               // newest closed month
  Movements movements_;
  UsageLines models_, keys_;
  Statement statement_;
};

void AppendCsv(std::string& out, const std::string& section, const std::string& item,
               const std::string& requests, int64_t amount_nano_usd) {
  out += section + ",\"";
  for (const char c : item) {
    if (c == '"') out += '"';
    out += c;
  }
  out += "\"," + requests + ',' + NanoToDecimalUsd(amount_nano_usd) + "\r\n";
}

}  // namespace

SqlResult<Statement> ReadStatement(sql::Connection& db, const std::string& workspace, int32_t month,
                                   int64_t now_us) {
  TRY(auto snapshot, sql::Transaction::Begin(db, sql::TxMode::kRead));
  auto statement = Reader(db, workspace, month, now_us).Read();
  if (statement.ok() && month >= UtcMonth(now_us)) statement->preliminary_us = now_us;
  return statement;
}

SqlResult<std::vector<Statement>> ReadStatements(sql::Connection& db, const std::string& workspace,
                                                 int64_t now_us) {
  TRY(auto snapshot, sql::Transaction::Begin(db, sql::TxMode::kRead));
  auto statements = Reader(db, workspace, UtcMonth(now_us), now_us).ReadAll();
  if (statements.ok()) statements->back().preliminary_us = now_us;
  return statements;
}

std::string ToCsv(const Statement& statement) {
  std::string out = "section,item,requests,amount_usd\r\n";
  if (!statement.number.empty()) out += "number,\"" + statement.number + "\",,\r\n";
  if (statement.preliminary_us > 0) {
    out += "preliminary," + UtcText(statement.preliminary_us, UtcPrecision::kSeconds) + ",,\r\n";
  }
  AppendCsv(out, "balance", "opening", "", statement.opening_nano_usd);
  for (const StatementLine& line : statement.movements) {
    AppendCsv(out, "movement", line.name, "", line.amount_nano_usd);
  }
  AppendCsv(out, "balance", "closing", "", statement.closing_nano_usd);
  if (statement.owes()) {
    AppendCsv(out, "owed", "opening", "", statement.opening_receivable_nano_usd);
    for (const StatementLine& line : statement.receivable_movements) {
      AppendCsv(out, "owed_movement", line.name, "", line.amount_nano_usd);
    }
    AppendCsv(out, "owed", "closing", "", statement.closing_receivable_nano_usd);
  }
  for (const StatementLine& line : statement.by_model) {
    AppendCsv(out, "usage_by_model", line.name, std::to_string(line.requests),
              line.amount_nano_usd);
  }
  for (const StatementLine& line : statement.by_key) {
    AppendCsv(out, "usage_by_key", line.name, std::to_string(line.requests), line.amount_nano_usd);
  }
  return out;
}

}  // namespace tollgate::billing
