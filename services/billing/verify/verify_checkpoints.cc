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

struct LogNames {
  std::string_view table, row, rows;
  bool by_workspace;
};
// Indexed by Log.
constexpr LogNames kLogNames[] = {
    {"entry", "entry", "entries", true},
    {"payment_event", "event of payments", "events of payments", true},
    {"audit_entry", "entry", "entries", false},
};

std::span<const sql::Connection::KeyColumn> KeyOf(const LogNames& names) {
  static constexpr sql::Connection::KeyColumn kKey[] = {{"shard", sql::Param::Kind::kInt},
                                                        {"workspace", sql::Param::Kind::kText},
                                                        {"sequence", sql::Param::Kind::kInt}};
  return names.by_workspace ? std::span(kKey) : std::span(kKey).last(1);
}

// Number of the newest row; 0: none.
SqlResult<int64_t> ReadNewest(sql::Connection& db, const LogNames& names,
                              const std::string& workspace) {
  const std::string head = "SELECT sequence FROM " + std::string(names.table);
  const std::string tail = " ORDER BY sequence DESC LIMIT 1";
  int64_t newest = 0;
  const auto read = [&newest](const Row& row) { newest = row.Int(0); };
  TRY(names.by_workspace ? db.Query(head + " WHERE shard = $1 AND workspace = $2" + tail,
                                    {LedgerShard(workspace), workspace}, read)
                         : db.Query(head + tail, {}, read));
  return newest;
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
    if (chain == kBillingAuditChain) {
      if (!workspace.empty()) continue;
      TRY(CompareOne(db, "", Log::kAudit, heads, Findings::OfAuditLog(report)));
      continue;
    }
    const std::string name = chain.substr(chain.find('/') + 1);
    if (!workspace.empty() && name != workspace) continue;
    if (chain.starts_with(kArchiveChain)) {
      TRY(CompareArchive(db, name, heads, report));
      continue;
    }
    const Log log = chain.starts_with(kPaymentChain) ? Log::kPayments : Log::kEntries;
    TRY(CompareOne(db, name, log, heads, Findings(report, name)));
  }
  return {};
}

SqlResult<void> Anchors::CompareOne(sql::Connection& db, const std::string& workspace, Log log,
                                    const std::vector<Head>& heads, Findings findings) const {
  const LogNames& names = kLogNames[static_cast<size_t>(log)];
  const int32_t shard = LedgerShard(workspace);
  TRY(auto newest, ReadNewest(db, names, workspace));
  // Entries before the cut are only in the archive; only the newest of them is known here.
  int64_t archived = 0;
  std::string archived_head;
  if (log == Log::kEntries) {
    TRY(db.Query("SELECT sequence, head FROM archive_workspace WHERE shard = $1 AND workspace = $2",
                 {shard, workspace}, [&](const Row& row) {
                   archived = row.Int(0);
                   archived_head = row.Text(1);
                 }));
  }
  const int64_t last = std::max(newest, archived);
  if (last == 0 && log == Log::kEntries) {
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
      if (names.by_workspace) keys.insert(keys.end(), {shard, workspace});
      keys.push_back(head.sequence);
    }
    TRY(db.QueryKeys("SELECT sequence, hash FROM " + std::string(names.table) + " WHERE",
                     KeyOf(names), keys, "",
                     [&](const Row& row) { hashes[row.Int(0)] = row.Text(1); }));
    if (archived > 0) hashes[archived] = archived_head;
    for (const Head& head : batch) {
      const std::string row_name(names.row);
      const std::string place = "checkpoint " + std::to_string(head.checkpoint) + " has " +
                                row_name + " " + std::to_string(head.sequence);
      const auto stored = hashes.find(head.sequence);
      if (head.sequence > last) {
        findings.Report(std::string(names.rows) + " were removed: the last one is " +
                        std::to_string(last) + ", " + place);
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
