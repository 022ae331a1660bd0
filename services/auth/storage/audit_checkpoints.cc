#include "services/auth/storage/audit_checkpoints.h"

#include "common/base/try.h"
#include "services/auth/storage/audit_log.h"

namespace tollgate::auth {

BasicResult<AuditCheckpointWriter, std::string> AuditCheckpointWriter::Open(
    const std::string& file, const std::string& key_file) {
  TRY(auto opened, CheckpointFile::Open(file, key_file));
  return AuditCheckpointWriter(std::move(opened));
}

std::string AuditCheckpointWriter::Write(AuthStore& store) {
  Checkpoint checkpoint;
  checkpoint.at_us = store.clock().WallUs();
  Anchor anchor;
  anchor.chain = kAuditChain;
  const auto read = store.Read([&](sql::Connection& sql) {
    return sql.Query("SELECT audit_sequence, audit_hash FROM auth_head WHERE id = 1", {},
                     [&](const sql::Row& row) {
                       anchor.sequence = row.Int(0);
                       anchor.head = row.Text(1);
                     });
  });
  if (!read) return read.error().ToString();
  if (anchor.sequence == 0 || anchor.sequence == written_) return "";
  const int64_t sequence = anchor.sequence;
  checkpoint.anchors.push_back(std::move(anchor));
  if (std::string failed = file_.Append(checkpoint); !failed.empty()) return failed;
  written_ = sequence;
  return "";
}

}  // namespace tollgate::auth
