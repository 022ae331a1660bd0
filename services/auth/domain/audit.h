// The audit log's chain: every event carries a hash over itself and the event before it, so that a
// changed, missing or moved event is found. Pure. spec: reliability.md section 3.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/error/error.h"

namespace tollgate::auth {

struct AuditRecord {
  int64_t sequence = 0;  // from 1, without gaps
  int64_t at_us = 0;
  std::string actor;
  std::string action;
  std::string workspace_id;
  std::string subject;
  std::string detail;
  std::string hash;  // 32 bytes
};

// What the first event follows: 32 zero bytes.
std::string AuditStart();
// The hash of an event (its own hash field aside) after the one with this hash.
std::string AuditHash(const std::string& previous, const AuditRecord& record);

// Walks a log in the order of its sequence.
class AuditVerifier {
 public:
  // False with the reason in problem() at the first event that does not follow.
  bool Add(const AuditRecord& record);
  // Whether the log ends where its head says that it must: finds a cut-off end.
  bool Finish(int64_t sequence, const std::string& hash);
  const std::string& problem() const { return problem_; }

 private:
  bool Fail(std::string problem);
  int64_t sequence_ = 0;
  std::string hash_ = AuditStart();
  std::string problem_;
};

}  // namespace tollgate::auth
