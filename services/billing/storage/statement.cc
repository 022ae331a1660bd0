#include "services/billing/storage/statement.h"

#include <algorithm>
#include <map>

#include "common/base/clock.h"
#include "common/base/utc_text.h"
#include "common/money/money.h"
#include "services/billing/domain/shard.h"
#include "services/billing/domain/types.h"
#include "services/billing/storage/verify_state.h"

namespace tollgate::billing {
namespace {

using sql::Row;
using sql::SqlResult;

Fail<sql::SqlError> Refuse(std::string why) {
  return Fail{sql::SqlError{sql::ErrorKind::kOther, std::move(why)}};
}

// What entries add to the posted credit, as a column.
std::string NetColumn() {
  return "CAST(sum(CASE WHEN credit IN (3, 4) THEN amount ELSE 0 END -"
         " CASE WHEN debit IN (3, 4) THEN amount ELSE 0 END) AS BIGINT)";
}

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
    default:
      return std::string(EntryKindName(kind));
  }
}

int32_t NextMonth(int32_t month) { return month % 100 == 12 ? month + 89 : month + 1; }

// Reads the statement of one month, or of all months up to it.
class Reader {
 public:
  Reader(sql::Connection& db, const std::string& workspace, int32_t month)
      : db_(db), shard_(LedgerShard(workspace)) {
    statement_.workspace = workspace;
    statement_.month = month;
    start_us_ = UtcMonthStartUs(month);
    end_us_ = UtcMonthStartUs(NextMonth(month));
  }

  SqlResult<Statement> Read() {
    if (auto done = ReadArchive(); !done.ok()) return Fail{std::move(done).error()};
    if (cut_us_ > start_us_) {
      return Refuse("month " + std::to_string(statement_.month) +
                    " is archived; its entries are in the files of the archive");
    }
    if (auto done = ReadBalances(); !done.ok()) return Fail{std::move(done).error()};
    if (auto done = ReadMovements(); !done.ok()) return Fail{std::move(done).error()};
    if (auto done = ReadUsage("model", statement_.by_model); !done.ok()) {
      return Fail{std::move(done).error()};
    }
    if (auto done = ReadUsage("key_id", statement_.by_key); !done.ok()) {
      return Fail{std::move(done).error()};
    }
    int64_t sum = statement_.opening_nano_usd;
    int64_t used = 0;
    for (const StatementLine& line : statement_.movements) {
      sum += line.amount_nano_usd;
      if (line.name == kUsageLine) used = -line.amount_nano_usd;
    }
    const auto total = [](const std::vector<StatementLine>& lines) {
      int64_t all = 0;
      for (const StatementLine& line : lines) all += line.amount_nano_usd;
      return all;
    };
    if (sum != statement_.closing_nano_usd || total(statement_.by_model) != used ||
        total(statement_.by_key) != used) {
      return Refuse("the entries of " + statement_.workspace +
                    " contradict each other; run tollgate verify-ledger");
    }
    return std::move(statement_);
  }

  // Up to the reader's month.
  SqlResult<std::vector<Statement>> ReadAll() {
    if (auto done = ReadArchive(); !done.ok()) return Fail{std::move(done).error()};
    // By month and name of the movement.
    std::map<int32_t, std::map<std::string, int64_t>> months;
    if (auto done = ReadMovementsByMonth(months); !done.ok()) return Fail{std::move(done).error()};
    int32_t month = statement_.month;
    if (!months.empty()) month = std::min(month, months.begin()->first);
    // What the first entries that are left follow; an archive ends with a month.
    if (archived_ > 0) month = std::min(statement_.month, UtcMonth(cut_us_));
    std::vector<Statement> statements;
    int64_t balance = archived_nano_usd_;
    for (; month <= statement_.month; month = NextMonth(month)) {
      Statement& one = statements.emplace_back();
      one.workspace = statement_.workspace;
      one.month = month;
      one.opening_nano_usd = balance;
      for (const auto& [name, amount] : months[month]) {
        one.movements.push_back({name, 0, amount});
        balance += amount;
      }
      one.closing_nano_usd = balance;
    }
    return statements;
  }

 private:
  // By day in the database, which knows no months in both kinds.
  SqlResult<void> ReadMovementsByMonth(std::map<int32_t, std::map<std::string, int64_t>>& months) {
    constexpr int64_t kDayUs = 86'400'000'000;
    return db_.Query(
        "SELECT at_us / 86400000000, kind, " + NetColumn() +
            " FROM entry WHERE shard = $1 AND workspace = $2 AND sequence > $3 AND at_us < $4"
            " GROUP BY 1, 2 ORDER BY 1, 2",
        {shard_, statement_.workspace, archived_, end_us_}, [&](const Row& row) {
          auto& lines = months[UtcMonth(row.Int(0) * kDayUs)];
          if (row.Int(2) != 0) lines[NameOf(static_cast<EntryKind>(row.Int(1)))] += row.Int(2);
        });
  }

  SqlResult<void> ReadArchive() {
    return db_.Query(
        "SELECT sequence, state FROM archive_workspace WHERE shard = $1 AND workspace = $2",
        {shard_, statement_.workspace}, [&](const Row& row) {
          const auto state = DecodeState(row.Bytes(1));
          if (!state) return;
          archived_ = row.Int(0);
          cut_us_ = state->cut_us;
          archived_nano_usd_ = state->sums[static_cast<size_t>(Account::kPaid)] +
                               state->sums[static_cast<size_t>(Account::kGranted)];
        });
  }

  SqlResult<void> ReadBalances() {
    const std::string text = "SELECT " + NetColumn() +
                             " FROM entry WHERE shard = $1 AND workspace = $2 AND sequence > $3"
                             " AND at_us < $4";
    for (const auto& [until_us, balance] : {std::pair(start_us_, &statement_.opening_nano_usd),
                                            std::pair(end_us_, &statement_.closing_nano_usd)}) {
      auto read = db_.Query(
          text, {shard_, statement_.workspace, archived_, until_us},
          [&, into = balance](const Row& row) { *into = archived_nano_usd_ + row.Int(0); });
      if (!read.ok()) return read;
    }
    return {};
  }

  SqlResult<void> ReadMovements() {
    std::map<std::string, int64_t> lines;
    auto read = db_.Query("SELECT kind, " + NetColumn() +
                              " FROM entry WHERE shard = $1 AND workspace = $2 AND sequence > $3"
                              " AND at_us >= $4 AND at_us < $5 GROUP BY kind ORDER BY kind",
                          {shard_, statement_.workspace, archived_, start_us_, end_us_},
                          [&](const Row& row) {
                            const std::string name = NameOf(static_cast<EntryKind>(row.Int(0)));
                            if (row.Int(1) != 0) lines[name] += row.Int(1);
                          });
    if (!read.ok()) return read;
    for (const auto& [name, amount] : lines) statement_.movements.push_back({name, 0, amount});
    return {};
  }

  SqlResult<void> ReadUsage(const std::string& column, std::vector<StatementLine>& into) {
    return db_.Query(
        "SELECT u." + column +
            ", count(DISTINCT e.request), CAST(sum(CASE WHEN e.debit IN (3, 4) THEN e.amount"
            " WHEN e.credit IN (3, 4) THEN -e.amount ELSE 0 END) AS BIGINT)"
            " FROM entry e JOIN usage_record u ON u.shard = e.shard AND u.id = e.request"
            " WHERE e.shard = $1 AND e.workspace = $2 AND e.sequence > $3 AND e.at_us >= $4"
            " AND e.at_us < $5 AND e.kind IN (9, 11) GROUP BY u." +
            column + " ORDER BY u." + column,
        {shard_, statement_.workspace, archived_, start_us_, end_us_},
        [&](const Row& row) { into.push_back({row.Text(0), row.Int(1), row.Int(2)}); });
  }

  sql::Connection& db_;
  const int32_t shard_;
  int64_t start_us_ = 0;
  int64_t end_us_ = 0;
  int64_t archived_ = 0;
  int64_t archived_nano_usd_ = 0;
  int64_t cut_us_ = 0;
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
  auto snapshot = sql::Transaction::Begin(db, sql::TxMode::kRead);
  if (!snapshot.ok()) return Fail{std::move(snapshot).error()};
  auto statement = Reader(db, workspace, month).Read();
  if (statement.ok() && month >= UtcMonth(now_us)) statement->preliminary_us = now_us;
  return statement;
}

SqlResult<std::vector<Statement>> ReadStatements(sql::Connection& db, const std::string& workspace,
                                                 int64_t now_us) {
  auto snapshot = sql::Transaction::Begin(db, sql::TxMode::kRead);
  if (!snapshot.ok()) return Fail{std::move(snapshot).error()};
  auto statements = Reader(db, workspace, UtcMonth(now_us)).ReadAll();
  if (statements.ok()) statements->back().preliminary_us = now_us;
  return statements;
}

std::string ToCsv(const Statement& statement) {
  std::string out = "section,item,requests,amount_usd\r\n";
  if (statement.preliminary_us > 0) {
    out += "preliminary," + UtcText(statement.preliminary_us, UtcPrecision::kSeconds) + ",,\r\n";
  }
  AppendCsv(out, "balance", "opening", "", statement.opening_nano_usd);
  for (const StatementLine& line : statement.movements) {
    AppendCsv(out, "movement", line.name, "", line.amount_nano_usd);
  }
  AppendCsv(out, "balance", "closing", "", statement.closing_nano_usd);
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
