#include "common/checkpoint/checkpoint_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>

#include "common/base/crypto.h"
#include "common/base/try.h"

namespace tollgate {

BasicResult<CheckpointFile, std::string> CheckpointFile::Open(std::string file,
                                                              const std::string& key_file) {
  TRY(auto key, SigningKey::ReadPrivate(key_file));
  CheckpointFile opened(std::move(file), std::move(key));
  std::ifstream in(opened.file_, std::ios::binary);
  for (std::string line; std::getline(in, line);) {
    opened.torn_ = in.eof();
    if (line.empty()) continue;
    const auto checkpoint = DecodeCheckpoint(line, opened.key_);
    if (!checkpoint.ok()) continue;
    opened.number_ = checkpoint->number;
    opened.previous_ = Sha256(line);
  }
  return opened;
}

std::string CheckpointFile::Append(Checkpoint& checkpoint) {
  checkpoint.number = number_ + 1;
  checkpoint.previous = previous_;
  const std::string line = EncodeCheckpoint(checkpoint, key_);
  const int file = ::open(file_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return "open: " + std::string(std::strerror(errno));
  const std::string text = (torn_ ? "\n" : "") + line + "\n";
  std::string failed;
  size_t done = 0;
  while (done < text.size() && failed.empty()) {
    const ssize_t count = ::write(file, text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) failed = "write: " + std::string(std::strerror(errno));
    if (count > 0) done += static_cast<size_t>(count);
  }
  torn_ = done > 0 && done < text.size();
  if (failed.empty() && ::fdatasync(file) != 0) {
    failed = "fdatasync: " + std::string(std::strerror(errno));
  }
  ::close(file);
  if (!failed.empty()) return failed;
  number_ = checkpoint.number;
  previous_ = Sha256(line);
  return "";
}

BasicResult<void, std::string> ReadCheckpoints(
    const std::string& file, const SigningKey& key,
    const std::function<void(const Checkpoint&)>& checkpoint,
    const std::function<void(const std::string&)>& problem) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return Fail{"cannot read the checkpoints " + file};
  int64_t number = 0;
  std::string previous(32, '\0');
  int64_t line_number = 0;
  // A line cut by a crash is followed by one that continues the line before it.
  std::optional<std::string> damaged;
  for (std::string line; std::getline(in, line);) {
    ++line_number;
    if (line.empty()) continue;
    const auto decoded = DecodeCheckpoint(line, key);
    if (!decoded.ok()) {
      const std::string name = "line " + std::to_string(line_number) + " of the checkpoints ";
      const bool torn = decoded.error().find("whole") != std::string::npos;
      if (!torn || damaged) problem(name + decoded.error());
      damaged = name + decoded.error();
      continue;
    }
    if (decoded->number != number + 1 || decoded->previous != previous) {
      if (damaged) problem(*damaged);
      problem("checkpoint " + std::to_string(decoded->number) + " does not follow checkpoint " +
              std::to_string(number) + ": checkpoints were removed, changed or added");
    }
    damaged.reset();
    number = decoded->number;
    previous = Sha256(line);
    checkpoint(*decoded);
  }
  return {};
}

}  // namespace tollgate
