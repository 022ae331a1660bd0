#include "services/auth/storage/audit_log.h"

#include <map>
#include <vector>

#include "common/base/crypto.h"
#include "common/base/try.h"
#include "common/checkpoint/checkpoint_file.h"

namespace tollgate::auth {

using sql::SqlResult;

SqlResult<void> AppendAudit(sql::Connection& transaction, AuditRecord record) {
  return audit::Append(transaction, kAuditTables, std::move(record));
}

SqlResult<void> ReadAuditLog(sql::Connection& connection, const AuditQuery& query,
                             const std::function<void(AuditRecord)>& add) {
  std::string text = audit::SelectRecords(kAuditTables);
  std::vector<sql::Param> params;
  const auto where = [&](std::string_view condition, sql::Param value) {
    params.push_back(value);
    text += params.size() == 1 ? " WHERE " : " AND ";
    text += condition;
    text += " $" + std::to_string(params.size());
  };
  if (!query.workspace.empty()) where("workspace_id =", query.workspace);
  if (!query.actor.empty()) where("actor =", query.actor);
  if (!query.action.empty()) where("action =", query.action);
  if (!query.subject.empty()) where("subject =", query.subject);
  if (query.from_us > 0) where("at_us >=", query.from_us);
  if (query.before_us != INT64_MAX) where("at_us <", query.before_us);
  if (query.after > 0) where(query.oldest_first ? "sequence >" : "sequence <", query.after);
  text += query.oldest_first ? " ORDER BY sequence LIMIT " : " ORDER BY sequence DESC LIMIT ";
  text += std::to_string(query.limit);
  return connection.Query(text, params, [&](const sql::Row& row) { add(audit::ReadRecord(row)); });
}

namespace {

// Heads of the audit log in the checkpoints, by sequence.
BasicResult<std::map<int64_t, std::string>, std::string> ReadHeads(
    const AuditCheckpoints& checkpoints, AuditFinding& finding) {
  TRY(auto key, checkpoints.private_key ? SigningKey::ReadPrivate(checkpoints.key_file)
                                        : SigningKey::ReadPublic(checkpoints.key_file));
  std::map<int64_t, std::string> heads;
  auto read = ReadCheckpoints(
      checkpoints.file, key,
      [&](const Checkpoint& checkpoint) {
        ++finding.checkpoints;
        for (const Anchor& anchor : checkpoint.anchors) {
          if (anchor.chain != kAuditChain) continue;
          const auto [entry, added] = heads.emplace(anchor.sequence, anchor.head);
          if (!added && entry->second != anchor.head && finding.problem.empty()) {
            finding.problem = "the checkpoints have two hashes of event " +
                              std::to_string(anchor.sequence) + ": the log was rewritten";
          }
        }
      },
      [&](const std::string& problem) {
        if (finding.problem.empty()) finding.problem = problem;
      });
  if (!read.ok()) return Fail{std::move(read).error()};
  if (finding.checkpoints == 0 && finding.problem.empty()) {
    finding.problem = "there is no checkpoint in " + checkpoints.file;
  }
  return heads;
}

}  // namespace

SqlResult<AuditFinding> VerifyAuditLog(sql::Connection& connection,
                                       const AuditCheckpoints& checkpoints) {
  AuditFinding finding;
  std::map<int64_t, std::string> heads;
  if (!checkpoints.file.empty()) {
    // Read before the snapshot, which then contains every event with a checkpoint.
    auto read = ReadHeads(checkpoints, finding);
    if (!read.ok()) {
      finding.problem = read.error();
    } else {
      heads = std::move(*read);
    }
  }
  TRY(auto snapshot, sql::Transaction::Begin(connection, sql::TxMode::kRead));
  audit::Verifier verifier;
  auto head = heads.begin();
  std::string rewritten;
  auto read = connection.Query(
      audit::SelectRecords(kAuditTables) + " ORDER BY sequence", {}, [&](const sql::Row& row) {
        const AuditRecord record = audit::ReadRecord(row);
        if (!record.source.empty()) finding.sources.insert(record.source);
        if (!verifier.Add(record) || head == heads.end() || head->first != record.sequence) return;
        if (head->second != record.hash && rewritten.empty()) {
          rewritten = "event " + std::to_string(record.sequence) +
                      " has another hash than its checkpoint: the log was rewritten";
        }
        ++head;
      });
  if (!read) return Fail{read.error()};
  TRY(auto stored, audit::ReadHead(connection, kAuditTables));
  finding.sequence = verifier.sequence();
  finding.hash = verifier.hash();
  const auto report = [&](std::string problem) {
    if (finding.problem.empty()) finding.problem = std::move(problem);
  };
  if (!rewritten.empty()) report(rewritten);
  if (!stored) {
    report("the stored head of the log is missing");
  } else if (!verifier.Finish(stored->sequence, stored->hash)) {
    report(verifier.problem());
  }
  if (head != heads.end()) {
    report("the log ends with event " + std::to_string(verifier.sequence()) +
           ", a checkpoint has event " + std::to_string(head->first) + ": events were removed");
  }
  return finding;
}

}  // namespace tollgate::auth
