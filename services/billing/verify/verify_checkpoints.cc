#include "services/billing/verify/verify_checkpoints.h"

#include <algorithm>
#include <span>

#include "common/base/crypto.h"
#include "common/base/ledger_shard.h"
#include "common/base/try.h"
#include "common/checkpoint/checkpoint_file.h"
#include "services/billing/verify/verify_findings.h"

namespace tollgate::billing {
namespace {

using sql::Row;
using sql::SqlResult;

constexpr size_t kCheckpointBatch = 400;

void Report(VerifyReport& report, const std::string& what) {
  if (report.violations.size() < kMaxViolations) report.violations.push_back(what);
}

}  // namespace

BasicResult<Anchors, std::string> Anchors::Read(const std::string& file,
                                                const std::string& public_key_file,
                                                VerifyReport& report) {
  TRY(auto key, SigningKey::ReadPublic(public_key_file));
  Anchors anchors;
  auto read = ReadCheckpoints(
      file, key,
      [&anchors](const Checkpoint& checkpoint) {
        ++anchors.checkpoints_;
        for (const Anchor& anchor : checkpoint.anchors) {
          Head head{anchor.sequence, checkpoint.number, {}};
          std::copy_n(anchor.head.begin(), head.head.size(), head.head.begin());
          anchors.heads_[anchor.chain].push_back(head);
        }
      },
      [&report](const std::string& problem) { Report(report, problem); });
  if (!read.ok()) return Fail{std::move(read).error()};
  if (anchors.checkpoints_ == 0) Report(report, "there is no checkpoint in " + file);
  return anchors;
}

SqlResult<void> Anchors::Compare(sql::Connection& db, const std::string& workspace,
                                 VerifyReport& report) const {
  for (const auto& [chain, heads] : heads_) {
    const std::string name = chain.substr(chain.find('/') + 1);
    if (!workspace.empty() && name != workspace) continue;
    TRY(chain.starts_with(kArchiveChain)   ? CompareArchive(db, name, heads, report)
        : chain.starts_with(kPaymentChain) ? CompareOne(db, name, Log::kPayments, heads, report)
                                           : CompareOne(db, name, Log::kEntries, heads, report));
  }
  return {};
}

SqlResult<void> Anchors::CompareOne(sql::Connection& db, const std::string& workspace, Log log,
                                    const std::vector<Head>& heads, VerifyReport& report) const {
  static constexpr sql::Connection::KeyColumn kKey[] = {{"shard", sql::Param::Kind::kInt},
                                                        {"workspace", sql::Param::Kind::kText},
                                                        {"sequence", sql::Param::Kind::kInt}};
  const bool payments = log == Log::kPayments;
  const std::string table = payments ? "payment_event" : "entry";
  const std::string row_name = payments ? "event of payments" : "entry";
  const std::string rows_name = payments ? "events of payments" : "entries";
  Findings findings(report, workspace);
  const int32_t shard = LedgerShard(workspace);
  int64_t last = 0;
  auto read = db.Query("SELECT sequence FROM " + table +
                           " WHERE shard = $1 AND workspace = $2 ORDER BY sequence DESC LIMIT 1",
                       {shard, workspace}, [&](const Row& row) { last = row.Int(0); });
  // Entries before the cut are only in the archive; only the newest of them is known here.
  int64_t archived = 0;
  std::string archived_head;
  if (read.ok() && !payments) {
    read =
        db.Query("SELECT sequence, head FROM archive_workspace WHERE shard = $1 AND workspace = $2",
                 {shard, workspace}, [&](const Row& row) {
                   archived = row.Int(0);
                   archived_head = row.Text(1);
                 });
  }
  if (!read.ok()) return read;
  last = std::max(last, archived);
  if (last == 0 && !payments) {
    findings.Report("the workspace was deleted: checkpoint " +
                    std::to_string(heads.back().checkpoint) + " has " +
                    std::to_string(heads.back().sequence) + " entries of it");
    return {};
  }
  for (size_t at = 0; at < heads.size(); at += kCheckpointBatch) {
    const std::span<const Head> batch(heads.data() + at,
                                      std::min(kCheckpointBatch, heads.size() - at));
    std::map<int64_t, std::string> hashes;
    std::vector<sql::Param> keys;
    for (const Head& head : batch) {
      keys.insert(keys.end(), {shard, workspace, head.sequence});
    }
    read = db.QueryKeys("SELECT sequence, hash FROM " + table + " WHERE", kKey, keys, "",
                        [&](const Row& row) { hashes[row.Int(0)] = row.Text(1); });
    if (!read.ok()) return read;
    if (archived > 0) hashes[archived] = archived_head;
    for (const Head& head : batch) {
      const std::string place = "checkpoint " + std::to_string(head.checkpoint) + " has " +
                                row_name + " " + std::to_string(head.sequence);
      const auto stored = hashes.find(head.sequence);
      if (head.sequence > last) {
        findings.Report(rows_name + " were removed: the last one is " + std::to_string(last) +
                        ", " + place);
        return {};
      }
      if (stored == hashes.end()) {
        if (head.sequence > archived) findings.Report("an " + row_name + " was removed: " + place);
      } else if (!std::equal(head.head.begin(), head.head.end(), stored->second.begin(),
                             stored->second.end())) {
        findings.Report("the chain was rewritten: " + place + " with another hash");
        return {};
      }
    }
  }
  return {};
}

SqlResult<void> Anchors::CompareArchive(sql::Connection& db, const std::string& workspace,
                                        const std::vector<Head>& states,
                                        VerifyReport& report) const {
  Findings findings(report, workspace);
  int64_t month = 0;
  std::string digest;
  auto read = db.Query(
      "SELECT month, state FROM archive_workspace WHERE shard = $1"
      " AND workspace = $2",
      {LedgerShard(workspace), workspace}, [&](const Row& row) {
        month = row.Int(0);
        digest = Sha256(row.Bytes(1));
      });
  if (!read.ok()) return read;
  for (const Head& head : states) {
    const std::string place = "checkpoint " + std::to_string(head.checkpoint) + " has month " +
                              std::to_string(head.sequence);
    if (head.sequence > month) {
      findings.Report("archived months were removed: the last one is " + std::to_string(month) +
                      ", " + place);
    } else if (head.sequence == month && !std::ranges::equal(head.head, digest)) {
      findings.Report("the state of the archived months was changed: " + place +
                      " with another digest");
    } else {
      continue;
    }
    return {};
  }
  return {};
}

}  // namespace tollgate::billing
