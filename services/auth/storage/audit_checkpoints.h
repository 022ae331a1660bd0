// Signed checkpoints of the audit log, appended to a file outside the database.
#pragma once

#include <optional>
#include <string>

#include "common/checkpoint/checkpoint_file.h"
#include "services/auth/storage/auth_store.h"

namespace tollgate::auth {

class AuditCheckpointWriter {
 public:
  // Reads the private key and the last line of the file.
  static BasicResult<AuditCheckpointWriter, std::string> Open(const std::string& file,
                                                              const std::string& key_file);

  // Appends a checkpoint of the log's head if it has changed since the last one. Returns the error,
  // or "".
  std::string Write(AuthStore& store);

 private:
  explicit AuditCheckpointWriter(CheckpointFile file) : file_(std::move(file)) {}

  CheckpointFile file_;
  int64_t written_ = 0;  // sequence of the last checkpoint
};

}  // namespace tollgate::auth
