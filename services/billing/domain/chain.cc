#include "services/billing/domain/chain.h"

#include "common/base/crypto.h"

namespace tollgate::billing {
namespace {

void AppendInt(std::string& out, int64_t value) {
  for (int shift = 56; shift >= 0; shift -= 8) {
    out += static_cast<char>(static_cast<uint64_t>(value) >> shift & 0xff);
  }
}

// Prefixed with its length, so that no two different entries have the same encoding.
void AppendText(std::string& out, std::string_view text) {
  AppendInt(out, static_cast<int64_t>(text.size()));
  out += text;
}

}  // namespace

std::string EntryHash(std::string_view previous, const Entry& entry) {
  std::string encoded;
  encoded.reserve(192 + entry.memo.size());
  AppendText(encoded, previous);
  AppendText(encoded, entry.workspace);
  AppendInt(encoded, entry.sequence);
  AppendInt(encoded, static_cast<int64_t>(entry.kind));
  AppendText(encoded, entry.request);
  AppendInt(encoded, static_cast<int64_t>(entry.debit));
  AppendInt(encoded, static_cast<int64_t>(entry.credit));
  AppendInt(encoded, entry.amount_nano_usd);
  AppendInt(encoded, entry.month);
  AppendInt(encoded, entry.at_us);
  AppendText(encoded, entry.memo);
  return Sha256(encoded);
}

}  // namespace tollgate::billing
