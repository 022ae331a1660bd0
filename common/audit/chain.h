// The hash chain of an audit log. Every entry carries a hash over itself and the hash of its
// predecessor, so a changed, missing or reordered entry is detected. Pure. See docs/design/keys.md
// 6.
#pragma once

#include <cstdint>
#include <string>

namespace tollgate::audit {

// What the hash of an entry covers. Format 1 has no address; formats 1 and 2 have neither request
// id nor source.
inline constexpr int64_t kFormat = 3;

struct Record {
  int64_t sequence = 0;  // from 1, without gaps
  int64_t at_us = 0;
  std::string actor;
  std::string action;
  std::string workspace_id;
  std::string subject;
  std::string detail;
  std::string hash;  // 32 bytes
  // Address of the client; empty if there was none.
  std::string address;
  int64_t format = kFormat;
  // request_id of the call; empty if it had none.
  std::string request_id;
  // Origin of an entry copied from another service's log: the service, and the entry's number and
  // hash there. Time, actor, action and the other texts are those of the original.
  std::string source;
  int64_t source_sequence = 0;
  std::string source_hash;
};

// The predecessor hash of the first entry: 32 zero bytes.
std::string GenesisHash();
// The hash of a record after the entry with the hash `previous`. Ignores record.hash.
std::string HashOf(const std::string& previous, const Record& record);
// Whether times and texts are equal. Numbers, hashes and formats may differ.
bool SameContent(const Record& a, const Record& b);

// Verifies a log: Add for each entry in sequence order, then Finish.
class Verifier {
 public:
  Verifier() = default;
  // Continues after the entry with this number and hash.
  Verifier(int64_t sequence, std::string hash) : sequence_(sequence), hash_(std::move(hash)) {}

  // False at the first entry that does not continue the chain; problem() gives the reason.
  bool Add(const Record& record);
  // Compares the end of the log with the stored head: detects a truncated log.
  bool Finish(int64_t sequence, const std::string& hash);
  const std::string& problem() const { return problem_; }
  // Number of the last entry that continues the chain.
  int64_t sequence() const { return sequence_; }
  const std::string& hash() const { return hash_; }

 private:
  bool Fail(std::string problem);
  int64_t sequence_ = 0;
  std::string hash_ = GenesisHash();
  std::string problem_;
};

}  // namespace tollgate::audit
