// The file of signed checkpoints: lines are only appended, each has the hash of the one before it.
#pragma once

#include <functional>
#include <string>

#include "common/checkpoint/checkpoint.h"

namespace tollgate {

// Appends checkpoints. One writer per file; not thread-safe.
class CheckpointFile {
 public:
  // Reads the private key, and the last whole line of the file if there is one. A line that a crash
  // has cut is left as it is.
  static BasicResult<CheckpointFile, std::string> Open(std::string file,
                                                       const std::string& key_file);

  // Sets number and previous, signs the checkpoint and appends it durably. Empty, or what failed.
  std::string Append(Checkpoint& checkpoint);

 private:
  CheckpointFile(std::string file, SigningKey key) : file_(std::move(file)), key_(std::move(key)) {}

  std::string file_;
  SigningKey key_;
  int64_t number_ = 0;
  std::string previous_ = std::string(32, '\0');
  bool torn_ = false;  // the file ends within a line
};

// Calls checkpoint for each one of the file, and problem for what is wrong with the file: a line
// that was changed, removed or added. Fails when the file cannot be read.
BasicResult<void, std::string> ReadCheckpoints(
    const std::string& file, const SigningKey& key,
    const std::function<void(const Checkpoint&)>& checkpoint,
    const std::function<void(const std::string&)>& problem);

}  // namespace tollgate
