// The append-only file of signed checkpoints. Each line has the hash of the line before it.
#pragma once

#include <functional>
#include <string>

#include "common/checkpoint/checkpoint.h"

namespace tollgate {

// Appends checkpoints. One writer per file; not thread-safe.
class CheckpointFile {
 public:
  // Reads the private key, and the last whole line of the file if it has one. A line cut by a crash
  // stays as it is.
  static BasicResult<CheckpointFile, std::string> Open(std::string file,
                                                       const std::string& key_file);

  // Sets number and previous, signs the checkpoint and appends it durably. Returns "" or the error.
  std::string Append(Checkpoint& checkpoint);

 private:
  CheckpointFile(std::string file, SigningKey key) : file_(std::move(file)), key_(std::move(key)) {}

  std::string file_;
  SigningKey key_;
  int64_t number_ = 0;
  std::string previous_ = std::string(32, '\0');
  bool torn_ = false;  // the file ends within a line
};

// Calls checkpoint for each checkpoint of the file, and problem for each line that was changed,
// removed or added. Fails if the file cannot be read.
BasicResult<void, std::string> ReadCheckpoints(
    const std::string& file, const SigningKey& key,
    const std::function<void(const Checkpoint&)>& checkpoint,
    const std::function<void(const std::string&)>& problem);

}  // namespace tollgate
