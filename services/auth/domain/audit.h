// The hash chain of the audit log: every event carries a hash over itself and the hash of the event
// before it, so a changed, missing or reordered event is detected. Pure. See docs/design/keys.md 6.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/error/error.h"

namespace tollgate::auth {

// What the hash of a record covers. Records of the first format have no address.
inline constexpr int64_t kAuditFormat = 2;

struct AuditRecord {
  int64_t sequence = 0;  // from 1, without gaps
  int64_t at_us = 0;
  std::string actor;
  std::string action;
  std::string workspace_id;
  std::string subject;
  std::string detail;
  std::string hash;  // 32 bytes
  // Of the client; empty when there was none.
  std::string address;
  int64_t format = kAuditFormat;
};

// The hash that the first event follows: 32 zero bytes.
std::string AuditGenesisHash();
// The hash of a record that follows the event with the hash `previous`. Ignores record.hash.
std::string AuditHash(const std::string& previous, const AuditRecord& record);

// Verifies a log: Add for each event in sequence order, then Finish.
class AuditVerifier {
 public:
  // False at the first event that does not continue the chain; problem() gives the reason.
  bool Add(const AuditRecord& record);
  // Compares the end of the log with the stored head: detects a truncated log.
  bool Finish(int64_t sequence, const std::string& hash);
  const std::string& problem() const { return problem_; }
  // The last event that continues the chain.
  int64_t sequence() const { return sequence_; }
  const std::string& hash() const { return hash_; }

 private:
  bool Fail(std::string problem);
  int64_t sequence_ = 0;
  std::string hash_ = AuditGenesisHash();
  std::string problem_;
};

}  // namespace tollgate::auth
