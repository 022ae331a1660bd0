#include "services/billing/verify/verify.h"

#include <chrono>
#include <cstdio>

#include "common/base/ledger_shard.h"
#include "common/base/try.h"
#include "services/billing/storage/schema.h"
#include "services/billing/verify/verify_entries.h"
#include "services/billing/verify/verify_payments.h"
#include "services/billing/verify/verify_progress.h"
#include "services/billing/verify/verify_rollups.h"
#include "services/billing/verify/verify_strays.h"
#include "services/billing/verify/verify_usage.h"
#include "services/billing/verify/verify_wallet.h"
#include "services/billing/verify/verify_workspaces.h"

namespace tollgate::billing {
namespace {

using sql::Connection;
using sql::Row;
using sql::SqlError;
using sql::SqlResult;

constexpr auto kSaveEvery = std::chrono::seconds(5);

class LedgerVerifier {
 public:
  LedgerVerifier(Connection& db, const VerifyOptions& options) : db_(db), options_(options) {
    progress_.only = options.workspace;
  }

  SqlResult<VerifyReport> Run() {
    if (!options_.state_file.empty()) {
      auto loaded = LoadProgress(options_.state_file);
      if (!loaded.ok()) return Fail{SqlError{sql::ErrorKind::kOther, loaded.error()}};
      if (*loaded && (*loaded)->only != options_.workspace) {
        return Fail{SqlError{sql::ErrorKind::kOther,
                             "the state file belongs to a run over other workspaces; remove it"}};
      }
      if (*loaded) progress_ = std::move(**loaded);
      resumed_ = *loaded || resumed_;
    }
    SqlResult<void> done =
        options_.workspace.empty() ? All() : Shard(LedgerShard(options_.workspace));
    if (!done.ok()) {
      Save(true);
      return Fail{std::move(done).error()};
    }
    if (report().stopped) {
      Save(true);
    } else if (!options_.state_file.empty()) {
      std::remove(options_.state_file.c_str());
    }
    return std::move(progress_.report);
  }

 private:
  VerifyReport& report() { return progress_.report; }

  SqlResult<void> All() {
    for (int64_t shard = resumed_ ? progress_.shard - 1 : INT64_MIN; !report().stopped;) {
      TRY(auto next, NextShard(db_, shard));
      if (!next) return {};
      shard = *next;
      TRY(Shard(shard));
    }
    return {};
  }

  // Uses one snapshot for all rows of the shard; the ledger keeps running.
  SqlResult<void> Shard(int64_t shard) {
    if (shard != progress_.shard) {
      progress_.shard = shard;
      progress_.workspace.clear();
      progress_.state.reset();
    }
    TRY(auto snapshot, sql::Transaction::Begin(db_, sql::TxMode::kRead));
    TRY(PrepareSnapshot(db_));
    TRY(ReadLedger());
    TRY(auto workspaces, WorkspacesOf(db_, shard, cut_us_));
    for (const auto& [name, rows] : workspaces) {
      if (!options_.workspace.empty() && name != options_.workspace) continue;
      const bool in_work = progress_.state && progress_.state->workspace == name;
      if (!in_work && name <= progress_.workspace) continue;
      if (LedgerShard(name) != shard) {
        ReportMisplaced(name, rows, shard);
      } else if (auto done = Workspace(name, rows); !done.ok()) {
        return done;
      }
      if (report().stopped) return {};
      progress_.state.reset();
      progress_.workspace = name;
      Save(false);
    }
    return {};
  }

  SqlResult<void> ReadLedger() {
    TRY(auto payments, HasPayments(db_));
    has_payments_ = payments;
    auto read = db_.Query("SELECT max(cut_us) FROM archive", {},
                          [&](const Row& row) { cut_us_ = row.Int(0); });
    if (!read.ok() || !options_.overdue_holds) return read;
    return db_.Query("SELECT max(clock_us) FROM wallet", {},
                     [&](const Row& row) { latest_us_ = row.Int(0); });
  }

  void ReportMisplaced(const std::string& name, const WorkspaceRows& rows, int64_t shard) {
    Findings findings(report(), name);
    for (const std::string& table : rows.tables) {
      findings.Report("rows of " + table + " with shard " + std::to_string(shard) +
                      ", another than its own, which is " + std::to_string(LedgerShard(name)));
    }
  }

  SqlResult<void> Workspace(const std::string& name, const WorkspaceRows& rows) {
    Findings findings(report(), name);
    if (!progress_.state) {
      TRY(auto start, StartState(db_, name, options_.archive_verified, findings));
      // A run of the archive covers all workspaces.
      if (start.cut_us > 0 && start.cut_us != cut_us_) {
        findings.Report("the table archive ends at another time than the state of the workspace");
      }
      progress_.state = std::move(start);
    }
    WorkspaceState& state = *progress_.state;
    RowCheck row_check(db_, state, findings, latest_us_, nullptr);
    EntryCheck entries(db_, state, row_check, findings, options_, 0, nullptr);
    for (bool more = true; more;) {
      TRY(auto page, entries.Page());
      more = page;
      TRY(row_check.Flush());
      Save(false);
      if (!Continue(name)) return {};
    }
    TRY(entries.CloseGroup());
    TRY(entries.CheckRest());
    ++report().workspaces;
    TRY(CheckWallet(db_, state, rows, findings));
    TRY(CheckDeadLetters(db_, name, findings));
    if (has_payments_) {
      TRY(CheckPaymentLog(db_, name, findings));
    }
    UsageCheck usage(db_, state, findings, row_check.quota_held());
    // A large workspace takes long here, so progress is reported. A stop takes effect later, since
    // a resumed run would have to repeat this part.
    const auto alive = [&] {
      if (options_.progress && !options_.progress(report(), name)) wanted_ = false;
    };
    TRY(usage.Run(alive));
    TRY(CheckRollUps(db_, state, findings, alive));
    return CheckCounts(state, rows, usage.records(), findings);
  }

  // Finds rows that the checks above have not read.
  SqlResult<void> CheckCounts(const WorkspaceState& state, const WorkspaceRows& rows,
                              int64_t records, Findings& findings) {
    const auto compare = [&](int64_t stored, int64_t expected,
                             const std::string& table) -> SqlResult<void> {
      if (stored == expected) return {};
      findings.Expect(stored, expected, "the number of rows of " + table);
      return ReportStrays(db_, state.workspace, table, state.cut_us, findings);
    };
    TRY(compare(rows.holds, state.holds_opened, "hold"));
    TRY(compare(records, state.holds_closed, "usage_record"));
    int64_t commands = 0;
    TRY(db_.Query("SELECT count(*) FROM command WHERE shard = $1 AND workspace = $2",
                  {LedgerShard(state.workspace), state.workspace},
                  [&](const Row& row) { commands = row.Int(0); }));
    return compare(commands, state.commands_seen, "command");
  }

  bool Continue(const std::string& workspace) {
    if (!wanted_ || (options_.progress && !options_.progress(report(), workspace))) {
      report().stopped = true;
    }
    return !report().stopped;
  }

  void Save(bool now) {
    if (options_.state_file.empty()) return;
    const auto time = std::chrono::steady_clock::now();
    if (!now && time - saved_ < kSaveEvery) return;
    saved_ = time;
    // A run that cannot be resumed is better than no run.
    const std::string failed = SaveProgress(options_.state_file, progress_);
    if (!failed.empty()) std::fprintf(stderr, "verify: %s\n", failed.c_str());
  }

  Connection& db_;
  const VerifyOptions& options_;
  VerifyProgress progress_;
  bool resumed_ = false;
  bool wanted_ = true;  // last result of progress
  bool has_payments_ = false;
  int64_t cut_us_ = 0;
  int64_t latest_us_ = 0;
  std::chrono::steady_clock::time_point saved_ = std::chrono::steady_clock::now();
};

}  // namespace

SqlResult<VerifyReport> VerifyLedger(Connection& connection, const VerifyOptions& options) {
  return LedgerVerifier(connection, options).Run();
}

SqlResult<VerifyReport> VerifyLedger(sql::Database& database, const std::string& workspace) {
  TRY(auto connection, database.Connect());
  VerifyOptions options;
  options.workspace = workspace;
  return VerifyLedger(*connection, options);
}

}  // namespace tollgate::billing
