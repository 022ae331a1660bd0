#include "services/billing/verify/verify_digests.h"

#include <initializer_list>

#include "common/base/clock.h"
#include "common/base/crypto.h"
#include "common/base/ledger_shard.h"
#include "common/base/time_units.h"
#include "common/base/try.h"
#include "services/billing/domain/types.h"
#include "services/billing/storage/schema.h"
#include "services/billing/verify/verify_figures.h"

namespace tollgate::billing {
namespace {

using sql::Row;
using sql::SqlResult;

// Digest of rows in their order.
class RowDigest {
 public:
  explicit RowDigest(std::string_view what) : digest_(Sha256(what)) {}

  // The first columns are texts, the others integers.
  void Add(const Row& row, int texts, int columns) {
    FieldWriter out;
    out.Text(digest_);
    for (int i = 0; i < columns; ++i) {
      if (i < texts) {
        out.Text(row.Bytes(i));
      } else {
        out.Int(row.Int(i));
      }
    }
    digest_ = Sha256(out.Take());
  }
  std::string Take() { return std::move(digest_); }

 private:
  std::string digest_;
};

// A roll-up by key.
struct RollUpTable {
  const char* name;
  int64_t period_us;
};
constexpr RollUpTable kQuarters = {"usage_quarter", kQuarterUs};
constexpr RollUpTable kDays = {"usage_day", kDayUs};

SqlResult<void> AddTable(sql::Connection& db, const std::string& workspace, int64_t cut_us,
                         const RollUpTable& table, RowDigest& digest) {
  const std::string text =
      "SELECT key_id, model, period, requests, free_requests, prompt, cached, cache_write,"
      " completion, reasoning, charged, overrun FROM " +
      std::string(table.name) +
      " WHERE shard = $1 AND workspace = $2 AND period < $3"
      " AND (key_id, model, period) > ($4, $5, $6)"
      " ORDER BY key_id, model, period LIMIT " +
      std::to_string(kVerifyPage);
  std::string key;
  std::string model;
  int64_t period = -1;
  for (int64_t seen = kVerifyPage; seen == kVerifyPage;) {
    seen = 0;
    const std::string after_key = key;
    const std::string after_model = model;
    TRY(db.Query(text,
                 {LedgerShard(workspace), workspace, cut_us / table.period_us, after_key,
                  after_model, period},
                 [&](const Row& row) {
                   ++seen;
                   key = row.Text(0);
                   model = row.Text(1);
                   period = row.Int(2);
                   digest.Add(row, 2, 12);
                 }));
  }
  return {};
}

SqlResult<std::string> DigestTables(sql::Connection& db, const std::string& workspace,
                                    int64_t cut_us, std::initializer_list<RollUpTable> tables) {
  RowDigest digest("roll-ups");
  for (const RollUpTable& table : tables) TRY(AddTable(db, workspace, cut_us, table, digest));
  TRY(db.Query(
      "SELECT key_id, month, spent, held FROM key_month WHERE shard = $1 AND workspace = $2"
      " AND month < $3 ORDER BY key_id, month",
      {LedgerShard(workspace), workspace, UtcMonth(cut_us)},
      [&](const Row& row) { digest.Add(row, 1, 4); }));
  return digest.Take();
}

// Archives of earlier versions kept the quarters.
SqlResult<void> CheckArchivedUsage(sql::Connection& db, const WorkspaceState& state,
                                   Findings& findings) {
  if (state.archived_rollups.empty()) return {};
  TRY(auto digest, DigestRollUps(db, state.workspace, state.cut_us));
  if (digest == state.archived_rollups) return {};
  TRY(auto earlier, DigestRollUpsWithQuarters(db, state.workspace, state.cut_us));
  if (earlier != state.archived_rollups) {
    findings.Report("the usage of archived months (usage_day or key_month) changed");
  }
  return {};
}

}  // namespace

SqlResult<std::string> DigestRollUps(sql::Connection& db, const std::string& workspace,
                                     int64_t cut_us) {
  return DigestTables(db, workspace, cut_us, {kDays});
}

SqlResult<std::string> DigestRollUpsWithQuarters(sql::Connection& db, const std::string& workspace,
                                                 int64_t cut_us) {
  return DigestTables(db, workspace, cut_us, {kQuarters, kDays});
}

SqlResult<std::string> DigestStatements(sql::Connection& db, const std::string& workspace,
                                        int64_t cut_us) {
  const int32_t shard = LedgerShard(workspace);
  RowDigest digest("statements");
  TRY(
      db.Query("SELECT month, kind, amount, receivable FROM statement_month WHERE shard = $1"
               " AND workspace = $2 AND month < $3 ORDER BY month, kind",
               {shard, workspace, UtcMonth(cut_us)}, [&](const Row& row) {
                 // Archives of earlier versions have digests without what was owed.
                 digest.Add(row, 0, row.Int(3) == 0 ? 3 : 4);
               }));
  TRY(db.Query(
      "SELECT key_id, model, month, requests, amount FROM statement_usage WHERE shard = $1"
      " AND workspace = $2 AND month < $3 ORDER BY month, key_id, model",
      {shard, workspace, UtcMonth(cut_us)}, [&](const Row& row) { digest.Add(row, 2, 5); }));
  TRY(db.Query(
      "SELECT month, sequence, at_us FROM statement_close WHERE shard = $1 AND workspace = $2"
      " AND month < $3 ORDER BY month",
      {shard, workspace, UtcMonth(cut_us)}, [&](const Row& row) { digest.Add(row, 0, 3); }));
  return digest.Take();
}

SqlResult<std::string> DigestCommands(sql::Connection& db, const std::string& workspace,
                                      int64_t cut_us) {
  RowDigest digest("commands");
  std::string id;
  for (int64_t seen = kVerifyPage; seen == kVerifyPage;) {
    seen = 0;
    const std::string after = id;
    auto read = db.Query(
        "SELECT id, actor, reason, reference, decided_by, kind, amount, granted, cap, at_us, state,"
        " decided_us FROM command WHERE shard = $1 AND workspace = $2 AND id > $3 AND at_us < $4"
        " AND decided_us < $4 AND state <> $5 ORDER BY id LIMIT " +
            std::to_string(kVerifyPage),
        {LedgerShard(workspace), workspace, after, cut_us,
         static_cast<int>(CommandState::kPending)},
        [&](const Row& row) {
          ++seen;
          id = row.Text(0);
          digest.Add(row, 5, 12);
        });
    if (!read.ok()) return Fail{std::move(read).error()};
  }
  return digest.Take();
}

SqlResult<void> CheckArchived(sql::Connection& db, const WorkspaceState& state,
                              Findings& findings) {
  TRY(CheckArchivedUsage(db, state, findings));
  if (state.archived_commands.empty()) return {};
  TRY(auto digest, DigestCommands(db, state.workspace, state.cut_us));
  if (digest != state.archived_commands) {
    findings.Report("the commands of archived months changed");
  }
  return {};
}

}  // namespace tollgate::billing
