#include "common/audit/chain.h"

#include "common/base/crypto.h"

namespace tollgate::audit {
namespace {

// Fixed width and length prefixes: no two different entries have the same encoding.
void AppendNumber(std::string& out, int64_t number) {
  for (int shift = 56; shift >= 0; shift -= 8) {
    out.push_back(static_cast<char>(static_cast<uint64_t>(number) >> shift));
  }
}

void AppendText(std::string& out, const std::string& text) {
  AppendNumber(out, static_cast<int64_t>(text.size()));
  out += text;
}

bool IsOfOldFormat(const Record& record) {
  return record.request_id.empty() && record.source.empty() && record.source_sequence == 0 &&
         record.source_hash.empty();
}

// Whether the record has only members that its format covers.
bool IsKnownFormat(const Record& record) {
  switch (record.format) {
    case 1:
      return IsOfOldFormat(record) && record.address.empty();
    case 2:
      return IsOfOldFormat(record);
    default:
      return record.format == kFormat;
  }
}

}  // namespace

std::string GenesisHash() { return std::string(32, '\0'); }

std::string HashOf(const std::string& previous, const Record& record) {
  std::string text;
  AppendText(text, previous);
  AppendNumber(text, record.sequence);
  AppendNumber(text, record.at_us);
  for (const std::string* part :
       {&record.actor, &record.action, &record.workspace_id, &record.subject, &record.detail}) {
    AppendText(text, *part);
  }
  // An entry of an older format ends earlier. It cannot be passed off as one of another format: the
  // encodings differ in length or in the number here.
  if (record.format != 1) {
    AppendNumber(text, record.format);
    AppendText(text, record.address);
  }
  if (record.format > 2) {
    AppendText(text, record.request_id);
    AppendText(text, record.source);
    AppendNumber(text, record.source_sequence);
    AppendText(text, record.source_hash);
  }
  return Sha256(text);
}

bool SameContent(const Record& a, const Record& b) {
  return a.at_us == b.at_us && a.actor == b.actor && a.action == b.action &&
         a.workspace_id == b.workspace_id && a.subject == b.subject && a.detail == b.detail &&
         a.address == b.address && a.request_id == b.request_id;
}

bool Verifier::Add(const Record& record) {
  if (!problem_.empty()) return false;
  if (record.sequence != sequence_ + 1) {
    return Fail("event " + std::to_string(sequence_ + 1) + " is missing");
  }
  if (!IsKnownFormat(record) || HashOf(hash_, record) != record.hash) {
    return Fail("event " + std::to_string(record.sequence) + " was changed");
  }
  sequence_ = record.sequence;
  hash_ = record.hash;
  return true;
}

bool Verifier::Finish(int64_t sequence, const std::string& hash) {
  if (!problem_.empty()) return false;
  if (sequence != sequence_) {
    return Fail("the log ends with event " + std::to_string(sequence_) + " instead of " +
                std::to_string(sequence));
  }
  if (hash != hash_) return Fail("the hash of the last event differs from the stored head");
  return true;
}

bool Verifier::Fail(std::string problem) {
  problem_ = std::move(problem);
  return false;
}

}  // namespace tollgate::audit
