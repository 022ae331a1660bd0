#include "services/billing/verify/verify_strays.h"

#include <algorithm>
#include <vector>

#include "common/base/id.h"
#include "common/base/ledger_shard.h"

namespace tollgate::billing {

using sql::Param;
using sql::Row;
using sql::SqlResult;

SqlResult<void> ReportStrays(sql::Connection& db, const std::string& workspace,
                             const std::string& table, int64_t cut_us, Findings& findings) {
  const int32_t shard = LedgerShard(workspace);
  const bool is_command = table == "command";
  std::string text = "SELECT id FROM " + table + " WHERE shard = $1 AND workspace = $2 AND id > $3";
  if (table == "hold") text += " AND month <> 0 AND created_us >= $4";
  if (table == "usage_record") text += " AND admitted_us >= $4";
  // Commands are never archived, but their entries are.
  if (is_command) text += " AND at_us >= $4";
  text += " ORDER BY id LIMIT 20000";
  std::vector<std::string> ids;  // 16 bytes each: stored inline in the strings
  for (int64_t seen = 20000; seen == 20000;) {
    seen = 0;
    const std::string after = ids.empty() ? "" : ids.back();
    const Param key = is_command ? Param(after) : Param::Blob(after);
    auto read = db.Query(text, {shard, workspace, key, cut_us}, [&](const Row& row) {
      ids.push_back(row.Text(0));
      ++seen;
    });
    if (!read.ok()) return read;
  }
  std::vector<bool> known(ids.size());
  int64_t sequence = 0;
  for (int64_t seen = 20000; seen == 20000;) {
    seen = 0;
    const int64_t after = sequence;
    auto read = db.Query(
        "SELECT sequence, request FROM entry WHERE shard = $1 AND workspace = $2"
        " AND sequence > $3 ORDER BY sequence LIMIT 20000",
        {shard, workspace, after}, [&](const Row& row) {
          sequence = row.Int(0);
          ++seen;
          const auto id = std::lower_bound(ids.begin(), ids.end(), row.Bytes(1));
          if (id != ids.end() && *id == row.Bytes(1)) known[id - ids.begin()] = true;
        });
    if (!read.ok()) return read;
  }
  int left = 10;
  for (size_t i = 0; i < ids.size() && left > 0; ++i) {
    if (known[i]) continue;
    const auto id = is_command ? std::nullopt : Id::FromBytes(ids[i]);
    findings.Report(table + ' ' + (id ? id->ToHex() : ids[i]) + " has no entry");
    --left;
  }
  return {};
}

}  // namespace tollgate::billing
