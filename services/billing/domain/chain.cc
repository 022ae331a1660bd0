#include "services/billing/domain/chain.h"

#include "common/base/crypto.h"

namespace tollgate::billing {
namespace {

void AppendInt(std::string& out, int64_t value) {
  for (int shift = 56; shift >= 0; shift -= 8) {
    out += static_cast<char>(static_cast<uint64_t>(value) >> shift & 0xff);
  }
}

// With its length in front, so that no two different entries have one form.
void AppendText(std::string& out, std::string_view text) {
  AppendInt(out, static_cast<int64_t>(text.size()));
  out += text;
}

}  // namespace

std::string EntryHash(std::string_view previous, const Entry& entry) {
  std::string form;
  form.reserve(192 + entry.memo.size());
  AppendText(form, previous);
  AppendText(form, entry.workspace);
  AppendInt(form, entry.sequence);
  AppendInt(form, static_cast<int64_t>(entry.kind));
  AppendText(form, entry.request);
  AppendInt(form, static_cast<int64_t>(entry.debit));
  AppendInt(form, static_cast<int64_t>(entry.credit));
  AppendInt(form, entry.amount);
  AppendInt(form, entry.month);
  AppendInt(form, entry.at_us);
  AppendText(form, entry.memo);
  return Sha256(form);
}

}  // namespace tollgate::billing
