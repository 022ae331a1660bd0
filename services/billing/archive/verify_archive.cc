#include "services/billing/archive/verify_archive.h"

#include <map>
#include <vector>

#include "common/base/clock.h"
#include "common/base/crypto.h"
#include "common/base/ledger_shard.h"
#include "common/base/try.h"
#include "common/json/json.h"
#include "services/billing/archive/archive_files.h"
#include "services/billing/archive/archive_manifest.h"
#include "services/billing/archive/archive_scratch.h"
#include "services/billing/verify/verify_entries.h"

namespace tollgate::billing {
namespace {

using sql::Connection;
using sql::Row;
using sql::SqlResult;

class ArchiveCheck {
 public:
  ArchiveCheck(Connection& ledger, std::string folder, VerifyReport& report,
               const VerifyProgressFn& progress)
      : ledger_(ledger), folder_(std::move(folder)), report_(report), progress_(progress) {}

  std::string Open() { return scratch_.Open(folder_); }

  SqlResult<void> Month(const ArchivedFiles& files) {
    if (files.cut_us != UtcMonthStartUs(NextMonth(files.month))) {
      Report("archive: month " + std::to_string(files.month) + " has a wrong end");
    }
    const ReportFn report = [this](const std::string& what) { Report(what); };
    const auto manifest = ReadManifest(folder_, files, report);
    if (!manifest || !CheckFiles(manifest->root(), folder_, files, report)) return {};
    return Recompute(manifest->root(), files);
  }

  // Compares a state that was computed again with the one where the verification of the database
  // starts.
  void State(const Row& row) {
    const std::string workspace = row.Text(0);
    const std::string_view stored_bytes = row.Bytes(3);
    Findings findings(report_, workspace);
    const auto known = states_.extract(workspace);
    const auto stored = DecodeState(stored_bytes);
    if (known.empty()) return findings.Report("archive_workspace has a state, the archive none");
    if (!stored || stored->sequence != row.Int(1) || stored->head != row.Bytes(2)) {
      return findings.Report("archive_workspace is damaged");
    }
    const std::string& digest = digests_[workspace];
    if (!digest.empty() && digest != HexEncode(Sha256(stored_bytes))) {
      findings.Report("archive_workspace has another state than the manifest");
    }
    WorkspaceState computed = known.mapped();
    Compare(*stored, computed, findings);
    // Roll-ups stay in the database, with the digests that the manifest has.
    computed.archived_rollups = stored->archived_rollups;
    computed.archived_statements = stored->archived_statements;
    computed.archived_commands = stored->archived_commands;
    computed.statements_base_us = stored->statements_base_us;
    if (EncodeState(computed) != EncodeState(*stored)) {
      findings.Report("archive_workspace: the state is not the one of the archived entries");
    }
  }

  void ReportRest() {
    for (const auto& [workspace, state] : states_) {
      Findings(report_, workspace).Report("the archive has a state, archive_workspace none");
    }
  }

 private:
  void Report(const std::string& what) {
    if (report_.violations.size() < kMaxViolations) report_.violations.push_back(what);
  }

  SqlResult<void> Recompute(const json::Value& manifest, const ArchivedFiles& files) {
    struct Table {
      const char* name;
      CsvReader file;
    } tables[] = {{"entry", CsvReader(ArchivePath(folder_, "entries", files.month))},
                  {"hold", CsvReader(ArchivePath(folder_, "holds", files.month))},
                  {"usage_record", CsvReader(ArchivePath(folder_, "usage", files.month))}};
    for (const json::Value listed : manifest.Find("workspaces")) {
      const std::string workspace = listed.Find("workspace").string();
      digests_[workspace] = listed.Find("state_sha256").string();
      TRY(scratch_.Begin());
      SqlResult<void> done;
      for (Table& table : tables) {
        if (done.ok()) done = scratch_.Load(table.file, table.name, workspace);
      }
      if (done.ok()) done = Workspace(workspace, files.cut_us);
      scratch_.End();
      if (!done.ok()) return done;
    }
    for (const Table& table : tables) {
      if (table.file.more()) {
        Report(
            "the archive of month " + std::to_string(files.month) +
            " has rows of a workspace that its manifest does not list: " + table.file.workspace());
      }
    }
    return {};
  }

  // Goes on from the state of the month before.
  SqlResult<void> Workspace(const std::string& workspace, int64_t cut_us) {
    WorkspaceState& state = states_[workspace];
    state.workspace = workspace;
    Findings findings(report_, workspace);
    RowCheck rows(scratch_.db(), state, findings, 0, nullptr, &ledger_);
    EntryCheck entries(scratch_.db(), state, rows, findings, options_, 0, nullptr);
    for (bool more = true; more;) {
      TRY(auto page, entries.Page());
      more = page;
      if (progress_ && !progress_(report_, workspace)) {
        return sql::Refused("the verification of the archive was stopped");
      }
    }
    TRY(entries.CloseGroup());
    TRY(rows.Flush());
    state.BeginAfterCut(cut_us);
    return {};
  }

  static void Compare(const WorkspaceState& stored, const WorkspaceState& computed,
                      Findings& findings) {
    const auto expect = [&](Account account, const char* what) {
      const auto i = static_cast<size_t>(account);
      findings.Expect(stored.sums[i], computed.sums[i], std::string("archive_workspace: ") + what);
    };
    findings.Expect(stored.sequence, computed.sequence, "archive_workspace: the last entry");
    expect(Account::kPaid, "paid credit");
    expect(Account::kGranted, "granted credit");
    expect(Account::kHeld, "the held amount");
    expect(Account::kReceivable, "the receivable");
    findings.Expect(stored.cap.value_or(-1), computed.cap.value_or(-1),
                    "archive_workspace: the cap");
  }

  Connection& ledger_;
  const std::string folder_;
  VerifyReport& report_;
  const VerifyProgressFn& progress_;
  const VerifyOptions options_;
  ArchiveScratch scratch_;
  std::map<std::string, WorkspaceState> states_;
  std::map<std::string, std::string> digests_;  // of the newest manifest; empty in older ones
};

}  // namespace

SqlResult<void> VerifyArchive(Connection& db, const std::string& folder, VerifyReport& report,
                              const VerifyProgressFn& progress) {
  TRY(auto months, ReadArchivedMonths(db));
  ArchiveCheck check(db, folder, report, progress);
  if (!months.empty()) {
    if (std::string failed = check.Open(); !failed.empty()) return sql::Refused(std::move(failed));
  }
  for (const ArchivedFiles& month : months) {
    TRY(check.Month(month));
  }
  TRY(db.Query("SELECT workspace, sequence, head, state FROM archive_workspace", {},
               [&](const Row& row) { check.State(row); }));
  check.ReportRest();
  return {};
}

SqlResult<void> AddDigests(Connection& db, const std::string& folder) {
  std::vector<std::pair<std::string, std::string>> digests;  // by workspace
  auto read =
      db.Query("SELECT workspace, state FROM archive_workspace WHERE digest IS NULL", {},
               [&](const Row& row) { digests.emplace_back(row.Text(0), Sha256(row.Bytes(1))); });
  if (!read.ok() || digests.empty()) return read;
  VerifyReport report;
  TRY(VerifyArchive(db, folder, report));
  if (!report.ok()) {
    return sql::Refused("the states of an earlier version are not those of the archive: " +
                        report.violations.front());
  }
  TRY(auto tx, sql::Transaction::Begin(db));
  for (const auto& [workspace, digest] : digests) {
    TRY(
        db.Execute("UPDATE archive_workspace SET digest = $1 WHERE shard = $2 AND workspace = $3"
                   " AND digest IS NULL",
                   {sql::Param::Blob(digest), LedgerShard(workspace), workspace}));
  }
  return tx.Commit();
}

}  // namespace tollgate::billing
