// The statement of one workspace and month: opening balance, credit, usage, closing balance, and
// what the workspace owes. All amounts are sums of ledger entries whose time is in the month (UTC),
// exact to the nano-USD. An entry that is made after its month was closed counts in the next one.
#pragma once

#include <string>
#include <vector>

#include "common/sql/sql.h"

namespace tollgate::billing {

struct StatementLine {
  std::string name;
  int64_t requests = 0;  // usage only: requests whose first charge is in the month
  int64_t amount_nano_usd = 0;
};

// Name of the movement for usage.
inline constexpr char kUsageLine[] = "Usage";

struct Statement {
  std::string workspace;
  int32_t month = 0;           // YYYYMM
  int64_t preliminary_us = 0;  // time of a statement made before the month's end
  // Number of the document, such as "acme-2026-11". Empty until the month is closed; then the
  // statement no longer changes.
  std::string number;
  int64_t opening_nano_usd = 0;  // posted credit: paid and granted
  int64_t closing_nano_usd = 0;
  // Changes of the credit by kind of entry. Usage is one line, negative.
  std::vector<StatementLine> movements;
  // What chargebacks took beyond the credit and is not paid yet; 0 for most workspaces. Months that
  // an earlier version archived show what was owed at their end.
  int64_t opening_receivable_nano_usd = 0;
  int64_t closing_receivable_nano_usd = 0;
  std::vector<StatementLine> receivable_movements;  // positive: owed more
  bool owes() const {
    return opening_receivable_nano_usd != 0 || closing_receivable_nano_usd != 0 ||
           !receivable_movements.empty();
  }
  // Usage, positive.
  std::vector<StatementLine> by_model;
  std::vector<StatementLine> by_key;
};

// Fails for a month whose entries are archived and not in the roll-ups, and if the entries
// contradict each other.
sql::SqlResult<Statement> ReadStatement(sql::Connection& db, const std::string& workspace,
                                        int32_t month, int64_t now_us);

// Statements of all months from the first that has one to the current one, oldest first,
// without usage by model and key.
sql::SqlResult<std::vector<Statement>> ReadStatements(sql::Connection& db,
                                                      const std::string& workspace, int64_t now_us);

// Lines of section,item,requests,amount_usd. A preliminary statement begins with a line
// "preliminary" and its time.
std::string ToCsv(const Statement& statement);
// A4. Returns an empty string if the library fails.
std::string ToPdf(const Statement& statement);

}  // namespace tollgate::billing
