// The statement of one workspace and month: what was there, what came, what was used, what is left.
// All amounts are sums of ledger entries whose time is in the month (UTC), to the nano-USD.
#pragma once

#include <string>
#include <vector>

#include "common/sql/sql.h"

namespace tollgate::billing {

struct StatementLine {
  std::string name;
  int64_t requests = 0;  // of usage: those whose first charge is in the month
  int64_t amount_nano_usd = 0;
};

// The name of the movement that is the usage.
inline constexpr char kUsageLine[] = "Usage";

struct Statement {
  std::string workspace;
  int32_t month = 0;             // YYYYMM
  int64_t preliminary_us = 0;    // of a month that has not ended: when it was made
  int64_t opening_nano_usd = 0;  // posted credit, paid and granted
  int64_t closing_nano_usd = 0;
  // What changed the credit, by kind of entry; usage is one line, negative.
  std::vector<StatementLine> movements;
  // The usage, positive.
  std::vector<StatementLine> by_model;
  std::vector<StatementLine> by_key;
};

// Fails for an archived month, and when the entries contradict each other.
sql::SqlResult<Statement> ReadStatement(sql::Connection& db, const std::string& workspace,
                                        int32_t month, int64_t now_us);

// The statements of all months from the first that is not archived to the running one, oldest
// first, without usage by model and key.
sql::SqlResult<std::vector<Statement>> ReadStatements(sql::Connection& db,
                                                      const std::string& workspace, int64_t now_us);

// section,item,requests,amount_usd; a line each. A preliminary statement begins with a line
// "preliminary" and its time.
std::string ToCsv(const Statement& statement);
// A4. Empty when the library fails.
std::string ToPdf(const Statement& statement);

}  // namespace tollgate::billing
