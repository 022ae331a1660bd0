// Partitions the ledger's large tables by month on PostgreSQL (decision 54).
#include <cstdio>

#include "common/base/clock.h"
#include "services/billing/storage/schema.h"

namespace tollgate::billing {
namespace {

using sql::SqlResult;

int32_t MonthBefore(int32_t month) { return month % 100 == 1 ? month - 89 : month - 1; }

// The smallest id of this time, as a bytea literal: ids begin with their milliseconds
// (common/base/id.h).
std::string IdBound(int64_t at_us) {
  char text[32];
  std::snprintf(text, sizeof text, "'\\x%012llx'", static_cast<unsigned long long>(at_us / 1000));
  return text;
}

std::string TimeBound(int64_t at_us) { return std::to_string(at_us); }

struct PartitionedTable {
  const char* name;
  std::string (*bound)(int64_t at_us);
  // Leaves room in each page for updated rows.
  const char* options;
};
constexpr PartitionedTable kTables[] = {{"hold", IdBound, " WITH (fillfactor = 60)"},
                                        {"usage_record", IdBound, ""},
                                        {"entry", TimeBound, ""}};

}  // namespace

SqlResult<void> EnsurePartitions(sql::Connection& db, int64_t now_us, int32_t since_month) {
  if (db.dialect() == sql::Dialect::kSqlite) return {};
  const int32_t now = UtcMonth(now_us);
  int32_t first = MonthBefore(now);
  if (since_month != 0 && since_month < first) first = MonthBefore(since_month);
  const int32_t end = NextMonth(NextMonth(NextMonth(now)));
  // Creating a partition locks its table, so it is only done if the newest partition is missing.
  bool there = false;
  auto read =
      db.Query("SELECT 1 WHERE to_regclass($1) IS NOT NULL AND to_regclass($2) IS NOT NULL",
               {"entry_" + std::to_string(MonthBefore(end)), "entry_" + std::to_string(first)},
               [&](const sql::Row&) { there = true; });
  if (!read.ok() || there) return read;
  std::string script;
  for (const PartitionedTable& table : kTables) {
    const std::string name = table.name;
    script += "CREATE TABLE IF NOT EXISTS " + name + "_other PARTITION OF " + name + " DEFAULT" +
              table.options + ";\n";
    for (int32_t month = first; month < end; month = NextMonth(month)) {
      script += "CREATE TABLE IF NOT EXISTS " + name + "_" + std::to_string(month) +
                " PARTITION OF " + name + " FOR VALUES FROM (" +
                table.bound(UtcMonthStartUs(month)) + ") TO (" +
                table.bound(UtcMonthStartUs(NextMonth(month))) + ")" + table.options + ";\n";
    }
  }
  return db.ExecuteScript(script);
}

}  // namespace tollgate::billing
