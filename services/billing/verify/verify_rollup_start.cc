#include "services/billing/verify/verify_rollup_start.h"

#include "common/base/clock.h"
#include "common/base/ledger_shard.h"
#include "common/base/time_units.h"
#include "common/base/try.h"
#include "services/billing/storage/rollup_tables.h"
#include "services/billing/storage/schema.h"
#include "services/billing/storage/statement_closes.h"
#include "services/billing/verify/verify_digests.h"
#include "services/billing/verify/verify_wallet.h"

namespace tollgate::billing {
namespace {

using sql::Connection;
using sql::Row;
using sql::SqlResult;

// With more entries after the cut the roll-ups are still being built.
constexpr int64_t kMostFresh = 1'000'000;

SqlResult<void> ReportRowsWithoutCut(Connection& db, const std::string& workspace,
                                     Findings& findings) {
  for (const std::string_view table : kRollUpNames) {
    TRY(db.Query(
        "SELECT 1 FROM " + std::string(table) + " WHERE shard = $1 AND workspace = $2 LIMIT 1",
        {LedgerShard(workspace), workspace}, [&](const Row&) {
          findings.Report("rows of " + std::string(table) + " have no rollup_cut");
        }));
  }
  return {};
}

// Quarters of an hour that wait for the newest entry. The step that reaches it recomputes and
// removes them.
SqlResult<void> ReadStale(Connection& db, const WorkspaceState& state, RollUpStart& start,
                          Findings& findings) {
  int64_t rows = 0;
  auto read = db.Query("SELECT period, model FROM rollup_stale WHERE shard = $1 AND workspace = $2",
                       {LedgerShard(state.workspace), state.workspace}, [&](const Row& row) {
                         ++rows;
                         start.unknown_quarters.emplace(row.Int(0), row.Text(1));
                         start.unknown_days.emplace(row.Int(0) * kQuarterUs / kDayUs, row.Text(1));
                       });
  if (read.ok() && rows > 0 && start.cut == state.sequence) {
    findings.Report("rollup_stale has " + std::to_string(rows) +
                    " rows, but the roll-ups contain every entry");
  }
  return read;
}

// Statements of archived months are those that the archive saw or, if the roll-ups were built again
// after it, one sum in month 0.
SqlResult<void> CheckArchivedStatements(Connection& db, const WorkspaceState& archived,
                                        RollUpStart& start, Findings& findings) {
  const bool rebuilt = start.base_us == archived.cut_us;
  if (archived.cut_us > 0 && !rebuilt) start.first_month = UtcMonth(archived.cut_us);
  // An earlier version has archived the months.
  if (archived.cut_us > 0 && archived.archived_statements.empty()) return {};
  if (rebuilt) return {};
  if (start.base_us != archived.statements_base_us) {
    findings.Report("rollup_cut has a base that no archive has");
    return {};
  }
  TRY(auto digest, DigestStatements(db, archived.workspace, archived.cut_us));
  if (digest != archived.archived_statements) {
    findings.Report(
        "the statements of archived months (statement_month or statement_usage) changed");
  }
  return {};
}

SqlResult<void> ReadCloses(Connection& db, const WorkspaceState& state, RollUpStart& start,
                           Findings& findings) {
  TRY(auto closes, ReadStatementCloses(db, state.workspace));
  StatementClose last;
  for (const StatementClose& close : closes.all()) {
    const bool sound = close.sequence > last.sequence && close.sequence <= state.sequence &&
                       close.month <= LastClosableMonth(close.at_us);
    if (!sound)
      findings.Report("statement_close of " + std::to_string(close.month) + " is damaged");
    last = close;
  }
  start.closes = std::move(closes);
  return {};
}

}  // namespace

SqlResult<std::optional<RollUpStart>> ReadRollUpStart(Connection& db, const WorkspaceState& state,
                                                      Findings& findings) {
  std::optional<RollUpStart> start;
  auto done = db.Query(
      "SELECT sequence, base_us, receivables FROM rollup_cut WHERE shard = $1"
      " AND workspace = $2",
      {LedgerShard(state.workspace), state.workspace}, [&](const Row& row) {
        start.emplace();
        start->cut = row.Int(0);
        start->base_us = row.Int(1);
        start->receivables = row.Int(2);
      });
  if (done.ok() && !start) done = ReportRowsWithoutCut(db, state.workspace, findings);
  if (!done.ok()) return Fail{std::move(done).error()};
  if (!start) return start;
  if (start->cut > state.sequence) {
    findings.Report("the roll-ups are at entry " + std::to_string(start->cut) +
                    ", which does not exist (rollup_cut)");
    return std::optional<RollUpStart>();
  }
  if (start->receivables > start->cut) {
    findings.Report("rollup_cut has receivables of entries that the roll-ups do not contain");
  }
  VerifyReport known;  // the verification has begun with this state and has its findings
  Findings ignored(known, state.workspace);
  TRY(auto archived, StartState(db, state.workspace, true, ignored));
  start->sequence = archived.sequence;
  // An archive begins when the roll-ups contain all its entries.
  if (start->cut < start->sequence) {
    findings.Report("the roll-ups are at entry " + std::to_string(start->cut) +
                    " (rollup_cut), but entries up to " + std::to_string(start->sequence) +
                    " are archived");
    return std::optional<RollUpStart>();
  }
  if (state.sequence - start->cut > kMostFresh) return std::optional<RollUpStart>();
  for (const auto& [id, hold] : archived.holds) {
    if (hold.charged > 0) start->charged.insert(id);
  }
  TRY(ReadCloses(db, state, *start, findings));
  done = ReadStale(db, state, *start, findings);
  if (done.ok()) done = CheckArchivedStatements(db, archived, *start, findings);
  if (!done.ok()) return Fail{std::move(done).error()};
  return start;
}

}  // namespace tollgate::billing
