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

void AppendCandidate(std::string& out, const Candidate& candidate) {
  AppendText(out, candidate.model);
  AppendInt(out, candidate.rates.input_pico_usd);
  AppendInt(out, candidate.rates.output_pico_usd);
  AppendInt(out, candidate.price_version);
  AppendInt(out, candidate.prompt_bound);
  AppendInt(out, candidate.output_bound);
}

void AppendOptional(std::string& out, const std::optional<int64_t>& value) {
  AppendInt(out, value ? 1 : 0);
  AppendInt(out, value.value_or(0));
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
  // Entries of older versions have no detail.
  if (!entry.detail.empty()) AppendText(encoded, entry.detail);
  return Sha256(encoded);
}

std::string AdmissionDetail(const Hold& hold) {
  std::string encoded = "admission";
  AppendText(encoded, hold.id.ToBytes());
  AppendInt(encoded, hold.created_us);
  AppendText(encoded, hold.key_id);
  // Uses the first candidate: the current one changes while the hold is open.
  AppendCandidate(encoded, hold.candidates.empty() ? hold.Current() : hold.candidates.front());
  AppendOptional(encoded, hold.cap_nano_usd);
  AppendOptional(encoded, hold.key_quota_nano_usd);
  AppendInt(encoded, static_cast<int64_t>(hold.surface));
  AppendInt(encoded, hold.streamed ? 1 : 0);
  AppendText(encoded, hold.client_request_id);
  if (!hold.candidates.empty()) {
    AppendInt(encoded, static_cast<int64_t>(hold.candidates.size()));
    for (const Candidate& candidate : hold.candidates) AppendCandidate(encoded, candidate);
  }
  return Sha256(encoded);
}

std::string ClosingDetail(const Hold& hold) {
  std::string encoded = "closing";
  AppendText(encoded, hold.id.ToBytes());
  AppendInt(encoded, hold.usage.prompt);
  AppendInt(encoded, hold.usage.cached);
  AppendInt(encoded, hold.usage.cache_write);
  AppendInt(encoded, hold.usage.completion);
  AppendInt(encoded, hold.usage.reasoning);
  AppendInt(encoded, static_cast<int64_t>(hold.outcome));
  AppendText(encoded, hold.engine);
  AppendInt(encoded, hold.cut_by_credit ? 1 : 0);
  AppendInt(encoded, hold.estimated ? 1 : 0);
  AppendInt(encoded, hold.first_token_us);
  if (!hold.candidates.empty()) AppendInt(encoded, hold.candidate);
  return Sha256(encoded);
}

std::string CommandDetail(const Command& command) {
  std::string encoded = "command";
  AppendText(encoded, command.command_id);
  AppendInt(encoded, static_cast<int64_t>(command.kind));
  AppendInt(encoded, command.amount_nano_usd);
  AppendInt(encoded, command.granted ? 1 : 0);
  AppendOptional(encoded, command.cap_nano_usd);
  AppendText(encoded, command.actor);
  AppendText(encoded, command.reason);
  AppendText(encoded, command.reference);
  return Sha256(encoded);
}

}  // namespace tollgate::billing
