#include "services/auth/storage/audit_log.h"

#include <map>
#include <vector>

#include "common/base/crypto.h"
#include "common/checkpoint/checkpoint_file.h"
#include "services/auth/storage/rows.h"

namespace tollgate::auth {

using sql::SqlResult;

SqlResult<void> AppendAudit(sql::Connection& transaction, AuditRecord record) {
  std::string previous;
  auto head =
      transaction.Query("SELECT audit_sequence, audit_hash FROM auth_head WHERE id = 1 FOR UPDATE",
                        {}, [&](const sql::Row& row) {
                          record.sequence = row.Int(0) + 1;
                          previous = row.Text(1);
                        });
  if (!head) return head;
  record.format = kAuditFormat;
  record.hash = AuditHash(previous, record);
  auto added = transaction.Execute(
      "INSERT INTO audit_event (sequence, at_us, actor, action, workspace_id, subject, detail, "
      "hash, address, format) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
      {record.sequence, record.at_us, record.actor, record.action, record.workspace_id,
       record.subject, record.detail, sql::Param::Blob(record.hash), record.address,
       record.format});
  if (!added) return Fail{added.error()};
  auto advanced =
      transaction.Execute("UPDATE auth_head SET audit_sequence = $1, audit_hash = $2 WHERE id = 1",
                          {record.sequence, sql::Param::Blob(record.hash)});
  if (!advanced) return Fail{advanced.error()};
  return {};
}

SqlResult<void> ReadAuditLog(sql::Connection& connection, const AuditQuery& query,
                             const std::function<void(AuditRecord)>& add) {
  std::string text(kSelectAudit);
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
  return connection.Query(text, params, [&](const sql::Row& row) { add(ReadAudit(row)); });
}

namespace {

// The heads that the checkpoints have of the audit log, by sequence.
BasicResult<std::map<int64_t, std::string>, std::string> ReadHeads(
    const AuditCheckpoints& checkpoints, AuditFinding& finding) {
  auto key = checkpoints.private_key ? SigningKey::ReadPrivate(checkpoints.key_file)
                                     : SigningKey::ReadPublic(checkpoints.key_file);
  if (!key.ok()) return Fail{std::move(key).error()};
  std::map<int64_t, std::string> heads;
  auto read = ReadCheckpoints(
      checkpoints.file, *key,
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
    // Before the snapshot: it then has every event of which there is a checkpoint.
    auto read = ReadHeads(checkpoints, finding);
    if (!read.ok()) {
      finding.problem = read.error();
    } else {
      heads = std::move(*read);
    }
  }
  auto snapshot = sql::Transaction::Begin(connection, sql::TxMode::kRead);
  if (!snapshot.ok()) return Fail{std::move(snapshot).error()};
  AuditVerifier verifier;
  auto head = heads.begin();
  std::string rewritten;
  auto read = connection.Query(
      std::string(kSelectAudit) + " ORDER BY sequence", {}, [&](const sql::Row& row) {
        const AuditRecord record = ReadAudit(row);
        if (!verifier.Add(record) || head == heads.end() || head->first != record.sequence) return;
        if (head->second != record.hash && rewritten.empty()) {
          rewritten = "event " + std::to_string(record.sequence) +
                      " has another hash than its checkpoint: the log was rewritten";
        }
        ++head;
      });
  if (!read) return Fail{read.error()};
  int64_t stored_sequence = 0;
  std::string stored_hash;
  int64_t stored = 0;
  read = connection.Query("SELECT audit_sequence, audit_hash FROM auth_head WHERE id = 1", {},
                          [&](const sql::Row& row) {
                            ++stored;
                            stored_sequence = row.Int(0);
                            stored_hash = row.Text(1);
                          });
  if (!read) return Fail{read.error()};
  finding.sequence = verifier.sequence();
  finding.hash = verifier.hash();
  const auto report = [&](std::string problem) {
    if (finding.problem.empty()) finding.problem = std::move(problem);
  };
  if (!rewritten.empty()) report(rewritten);
  if (stored != 1) report("the stored head of the log is missing");
  if (!verifier.Finish(stored_sequence, stored_hash)) report(verifier.problem());
  if (head != heads.end()) {
    report("the log ends with event " + std::to_string(verifier.sequence()) +
           ", a checkpoint has event " + std::to_string(head->first) + ": events were removed");
  }
  return finding;
}

}  // namespace tollgate::auth
