#include "services/billing/archive/archive.h"

#include <algorithm>

#include "common/base/clock.h"
#include "common/base/crypto.h"
#include "common/base/ledger_shard.h"
#include "common/base/try.h"
#include "services/billing/archive/archive_files.h"
#include "services/billing/archive/verify_archive.h"
#include "services/billing/reports/rollup_changes.h"
#include "services/billing/reports/rollups.h"
#include "services/billing/storage/schema.h"
#include "services/billing/storage/statement_closes.h"
#include "services/billing/verify/verify_digests.h"
#include "services/billing/verify/verify_entries.h"
#include "services/billing/verify/verify_usage.h"
#include "services/billing/verify/verify_wallet.h"
#include "services/billing/verify/verify_workspaces.h"

namespace tollgate::billing {
namespace {

using sql::Connection;
using sql::Row;
using sql::SqlResult;

// Archives one month: verifies it and everything after it, in one snapshot per shard.
class MonthArchive {
 public:
  MonthArchive(Connection& db, const ArchiveOptions& options, int32_t month)
      : db_(db),
        options_(options),
        month_(month),
        cut_us_(UtcMonthStartUs(NextMonth(month))),
        files_(options.folder, month) {}

  SqlResult<ArchivedMonth> Run() {
    for (int64_t shard = INT64_MIN;;) {
      TRY(auto next, NextShard(db_, shard));
      if (!next) break;
      if (options_.stop()) return Fail{ArchiveStopped()};
      shard = *next;
      TRY(Shard(shard));
    }
    if (const std::string failed = files_.Finish(cut_us_, cuts_); !failed.empty()) {
      return sql::Refused(failed);
    }
    TRY(Record());
    return ArchivedMonth{month_, files_.entries(), files_.holds(), files_.usage_records()};
  }

 private:
  SqlResult<void> Shard(int64_t shard) {
    TRY(auto snapshot, sql::Transaction::Begin(db_, sql::TxMode::kRead));
    TRY(PrepareSnapshot(db_));
    TRY(auto workspaces, WorkspacesOf(db_, shard, 0));
    for (const auto& [name, rows] : workspaces) {
      VerifyReport report;
      Findings findings(report, name);
      if (LedgerShard(name) != shard) {
        findings.Report("rows with a wrong shard");
      } else if (auto done = Workspace(name, rows, findings); !done.ok()) {
        return done;
      }
      if (!report.ok()) {
        return sql::Refused(
            "nothing of month " + std::to_string(month_) +
            " was archived, since the ledger does not verify: " + report.violations[0]);
      }
    }
    return {};
  }

  SqlResult<void> Workspace(const std::string& name, const WorkspaceRows& rows,
                            Findings& findings) {
    TRY(auto start, StartState(db_, name, false, findings));
    WorkspaceState state = std::move(start);
    {
      RowCheck row_check(db_, state, findings, 0, &files_);
      EntryCheck entries(db_, state, row_check, findings, verify_, cut_us_, &files_);
      TRY(ToEnd(entries));
      TRY(row_check.Flush());
    }
    WorkspaceState cut = state;
    RowCheck row_check(db_, state, findings, 0, nullptr);
    EntryCheck entries(db_, state, row_check, findings, verify_, 0, nullptr);
    TRY(ToEnd(entries));
    TRY(entries.CheckRest());
    for (const auto& [id, hold] : state.holds) {
      if (hold.terminals == 0 && hold.opened_us < cut_us_) {
        findings.Report("a hold of the month is still open");
      }
    }
    TRY(CheckWallet(db_, state, rows, findings));
    UsageCheck usage(db_, state, findings, row_check.quota_held());
    TRY(usage.Run());
    TRY(AddDigestsOfKeptRows(cut, findings));
    cuts_.push_back(std::move(cut));
    return {};
  }

  // Rows before the cut that stay in the database are complete: all their requests are
  // closed and can no longer be corrected.
  SqlResult<void> AddDigestsOfKeptRows(WorkspaceState& cut, Findings& findings) {
    for (const auto& [digest, compute] : {std::pair(&cut.archived_rollups, &DigestRollUps),
                                          std::pair(&cut.archived_statements, &DigestStatements),
                                          std::pair(&cut.archived_commands, &DigestCommands)}) {
      TRY(auto computed, compute(db_, cut.workspace, cut_us_));
      *digest = std::move(computed);
    }
    TRY(auto rollups, ReadRollUpCut(db_, cut.workspace));
    if (rollups && std::min(rollups->sequence, rollups->receivables) < cut.sequence) {
      findings.Report("the roll-ups do not contain all entries of the month; run it again");
    }
    TRY(auto closes, ReadStatementCloses(db_, cut.workspace));
    if (closes.newest().sequence < cut.sequence) {
      findings.Report("the statement of the month is not closed");
    }
    cut.statements_base_us = rollups ? rollups->base_us : 0;
    cut.BeginAfterCut(cut_us_);
    return {};
  }

  SqlResult<void> ToEnd(EntryCheck& entries) {
    for (bool more = true; more;) {
      if (options_.stop()) return Fail{ArchiveStopped()};
      TRY(auto page, entries.Page());
      more = page;
    }
    return entries.CloseGroup();
  }

  SqlResult<void> Record() {
    TRY(auto tx, sql::Transaction::Begin(db_));
    auto done = db_.Execute(
        "INSERT INTO archive (month, cut_us, at_us, manifest, entries, holds, usage_records, actor)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        {month_, cut_us_, options_.now_us, sql::Param::Blob(files_.manifest_digest()),
         files_.entries(), files_.holds(), files_.usage_records(), options_.actor});
    if (!done.ok() && done.error().kind == sql::ErrorKind::kUnique) {
      return sql::Refused("another run has archived month " + std::to_string(month_) +
                          " meanwhile");
    }
    if (!done.ok()) return Fail{std::move(done).error()};
    for (const WorkspaceState& cut : cuts_) {
      const std::string state = EncodeState(cut);
      const std::string digest = Sha256(state);
      done = db_.Execute(
          "INSERT INTO archive_workspace (shard, workspace, month, sequence, head, state, digest)"
          " VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (shard, workspace) DO UPDATE SET"
          " month = excluded.month, sequence = excluded.sequence, head = excluded.head,"
          " state = excluded.state, digest = excluded.digest",
          {LedgerShard(cut.workspace), cut.workspace, month_, cut.sequence,
           sql::Param::Blob(cut.head), sql::Param::Blob(state), sql::Param::Blob(digest)});
      if (!done.ok()) return Fail{std::move(done).error()};
    }
    // Published while the month is locked: a concurrent run must not replace its files.
    if (const std::string failed = files_.Publish(); !failed.empty()) return sql::Refused(failed);
    return tx.Commit();
  }

  Connection& db_;
  const ArchiveOptions& options_;
  const int32_t month_;
  const int64_t cut_us_;
  const VerifyOptions verify_;
  MonthFiles files_;
  std::vector<WorkspaceState> cuts_;
};

}  // namespace

SqlResult<std::vector<ArchivedMonth>> ArchiveLedger(Connection& db, const ArchiveOptions& options) {
  int32_t month = 0;
  if (db.dialect() == sql::Dialect::kPostgres) {
    TRY(db.ExecuteScript("SET statement_timeout = 0"));
  }
  TRY(db.Query("SELECT max(month) FROM archive", {},
               [&](const Row& row) { month = static_cast<int32_t>(row.Int(0)); }));
  if (month > 0) {
    // Finishes an interrupted run.
    TRY(RemoveArchived(db, options));
    TRY(AddDigests(db, options.folder));
    month = NextMonth(month);
  } else {
    TRY(db.Query("SELECT min(at_us) FROM entry", {}, [&](const Row& row) {
      if (!row.IsNull(0)) month = UtcMonth(row.Int(0));
    }));
    if (month == 0) return std::vector<ArchivedMonth>();
  }
  // Archived entries must be in the roll-ups and in closed statements first, because the entries
  // are removed.
  TRY(FoldLedger(db, options.now_us, options.stop));
  std::vector<ArchivedMonth> archived;
  for (; month < options.before; month = NextMonth(month)) {
    if (options.now_us < UtcMonthStartUs(NextMonth(month)) + kArchiveAfterUs) {
      return sql::Refused(
          "month " + std::to_string(month) +
          " can be archived 8 days after its end, when its requests can no longer change");
    }
    TRY(auto done, MonthArchive(db, options, month).Run());
    archived.push_back(done);
    TRY(RemoveArchived(db, options));
  }
  return archived;
}

}  // namespace tollgate::billing
