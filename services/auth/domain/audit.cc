#include "services/auth/domain/audit.h"

#include "common/base/crypto.h"

namespace tollgate::auth {
namespace {

// Fixed width and length prefixes: no two different events have the same encoding.
void AppendNumber(std::string& out, int64_t number) {
  for (int shift = 56; shift >= 0; shift -= 8) {
    out.push_back(static_cast<char>(static_cast<uint64_t>(number) >> shift));
  }
}

void AppendText(std::string& out, const std::string& text) {
  AppendNumber(out, static_cast<int64_t>(text.size()));
  out += text;
}

}  // namespace

std::string AuditGenesisHash() { return std::string(32, '\0'); }

std::string AuditHash(const std::string& previous, const AuditRecord& record) {
  std::string text;
  AppendText(text, previous);
  AppendNumber(text, record.sequence);
  AppendNumber(text, record.at_us);
  for (const std::string* part :
       {&record.actor, &record.action, &record.workspace_id, &record.subject, &record.detail}) {
    AppendText(text, *part);
  }
  // An event of the first format ends here. It cannot be passed off as one of the second, nor the
  // other way round: the texts have different lengths.
  if (record.format != 1) {
    AppendNumber(text, record.format);
    AppendText(text, record.address);
  }
  return Sha256(text);
}

bool AuditVerifier::Add(const AuditRecord& record) {
  if (!problem_.empty()) return false;
  if (record.sequence != sequence_ + 1) {
    return Fail("event " + std::to_string(sequence_ + 1) + " is missing");
  }
  const bool known =
      record.format == kAuditFormat || (record.format == 1 && record.address.empty());
  if (!known || AuditHash(hash_, record) != record.hash) {
    return Fail("event " + std::to_string(record.sequence) + " was changed");
  }
  sequence_ = record.sequence;
  hash_ = record.hash;
  return true;
}

bool AuditVerifier::Finish(int64_t sequence, const std::string& hash) {
  if (!problem_.empty()) return false;
  if (sequence != sequence_) {
    return Fail("the log ends with event " + std::to_string(sequence_) + " instead of " +
                std::to_string(sequence));
  }
  if (hash != hash_) return Fail("the hash of the last event differs from the stored head");
  return true;
}

bool AuditVerifier::Fail(std::string problem) {
  problem_ = std::move(problem);
  return false;
}

}  // namespace tollgate::auth
