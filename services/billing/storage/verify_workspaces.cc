#include "services/billing/storage/verify_workspaces.h"

#include "services/billing/domain/shard.h"

namespace tollgate::billing {

using sql::Connection;
using sql::Row;
using sql::SqlResult;

SqlResult<void> CollectWorkspaces(Connection& db, const std::string& workspace,
                                  std::map<std::string, Counts>& workspaces,
                                  std::set<std::string>& misplaced) {
  const std::string all = workspace.empty() ? "1 = 1" : "workspace = $1";
  std::vector<sql::Param> params;
  if (!workspace.empty()) params.push_back(workspace);
  auto read = db.Query(
      "SELECT workspace, count(*) FROM hold WHERE month <> 0 AND " + all + " GROUP BY workspace",
      params, [&](const Row& row) { workspaces[row.Text(0)].holds = row.Int(1); });
  if (!read.ok()) return read;
  read = db.Query("SELECT workspace, count(*) FROM cap_month WHERE " + all + " GROUP BY workspace",
                  params, [&](const Row& row) { workspaces[row.Text(0)].months = row.Int(1); });
  if (!read.ok()) return read;
  if (!workspace.empty()) {
    workspaces[workspace];
    return {};
  }
  return db.Query(
      "SELECT shard, workspace FROM wallet UNION SELECT shard, workspace FROM entry UNION"
      " SELECT shard, workspace FROM usage_record",
      params, [&](const Row& row) {
        const std::string name = row.Text(1);
        workspaces[name];
        if (row.Int(0) != LedgerShard(name)) misplaced.insert(name);
      });
}

}  // namespace tollgate::billing
