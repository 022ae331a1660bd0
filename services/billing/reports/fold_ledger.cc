#include <vector>

#include "common/base/try.h"
#include "services/billing/reports/rollups.h"
#include "services/billing/storage/statement_closes.h"

namespace tollgate::billing {
namespace {

using sql::Row;
using sql::SqlResult;

// A column of the workspace's newest row in statement_close; 0 if there is none.
std::string Newest(const std::string& column) {
  return "(SELECT coalesce(max(s." + column +
         "), 0) FROM statement_close s WHERE s.shard = w.shard AND s.workspace = w.workspace)";
}

}  // namespace

SqlResult<void> FoldLedger(sql::Connection& db, int64_t now_us, const std::function<bool()>& stop) {
  constexpr int kPage = 2000;
  const int32_t closable = LastClosableMonth(now_us);
  int64_t shard = -1;
  std::string workspace;
  std::vector<std::string> behind;
  const auto fold = [&]() -> SqlResult<void> {
    for (const std::string& one : behind) {
      for (bool more = true; more && !stop();) {
        TRY(auto folded, FoldEntries(db, one, kFoldEntries, now_us));
        more = folded;
      }
    }
    behind.clear();
    return {};
  };
  // Left by a process that ended between two steps.
  TRY(db.Query("SELECT DISTINCT workspace FROM rollup_stale", {},
               [&](const Row& row) { behind.push_back(row.Text(0)); }));
  for (int seen = kPage; seen == kPage;) {
    seen = 0;
    const std::string after = workspace;
    auto read = db.Query(
        "SELECT w.shard, w.workspace, w.sequence, c.sequence, c.receivables, " + Newest("month") +
            ", " + Newest("sequence") +
            " FROM wallet w LEFT JOIN rollup_cut c"
            " ON c.shard = w.shard AND c.workspace = w.workspace"
            " WHERE (w.shard, w.workspace) > ($1, $2) ORDER BY w.shard, w.workspace LIMIT " +
            std::to_string(kPage),
        {shard, after}, [&](const Row& row) {
          ++seen;
          shard = row.Int(0);
          workspace = row.Text(1);
          const bool open = row.Int(5) < closable && row.Int(6) < row.Int(2);
          if (row.IsNull(3) || row.Int(2) != row.Int(3) || row.Int(3) != row.Int(4) || open) {
            behind.push_back(workspace);
          }
        });
    if (!read.ok()) return read;
    if (auto done = fold(); !done.ok() || stop()) return done;
  }
  return {};
}

}  // namespace tollgate::billing
