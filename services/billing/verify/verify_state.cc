#include "services/billing/verify/verify_state.h"

namespace tollgate::billing {
namespace {

constexpr int64_t kVersion = 4;
constexpr int64_t kVersionOnlyRollUps = 3;
constexpr int64_t kVersionWithoutLeases = 2;
// Version without the cut's sequence. Archives use it, since their state is the one at the cut.
constexpr int64_t kVersionWithoutCutSequence = 1;

// Lists the fields once, for reading and writing.
template <typename Sums, typename F>
void HoldFields(Sums& s, F&& field) {
  for (auto* value :
       {&s.opened, &s.terminals, &s.terminal_kind, &s.corrections, &s.first_authorized,
        &s.authorized, &s.held, &s.charged, &s.charged_granted, &s.overrun, &s.month, &s.opened_us,
        &s.closed_us, &s.admission_entry, &s.closing_entry, &s.moved, &s.moved_month}) {
    field(*value);
  }
}

template <typename Sums, typename F>
void CommandFields(Sums& s, F&& field) {
  for (auto* value : {&s.kind, &s.amount, &s.granted, &s.first_us, &s.decided_us, &s.requested,
                      &s.posted, &s.rejected, &s.entry}) {
    field(*value);
  }
}

}  // namespace

std::string MovedKey(const std::string& key_id, int64_t month) {
  return std::to_string(month) + ':' + key_id;
}

std::string LesseeKey(const std::string& lessee, int64_t month) { return MovedKey(lessee, month); }

void FieldWriter::Int(int64_t value) {
  for (int shift = 56; shift >= 0; shift -= 8) {
    out_ += static_cast<char>(static_cast<uint64_t>(value) >> shift & 0xff);
  }
}

void FieldWriter::Text(std::string_view text) {
  Int(static_cast<int64_t>(text.size()));
  out_ += text;
}

int64_t FieldReader::Int() {
  if (rest_.size() < 8) {
    ok_ = false;
    return 0;
  }
  uint64_t value = 0;
  for (int i = 0; i < 8; ++i) value = value << 8 | static_cast<unsigned char>(rest_[i]);
  rest_.remove_prefix(8);
  return static_cast<int64_t>(value);
}

std::string FieldReader::Text() {
  const int64_t size = Int();
  if (!ok_ || size < 0 || static_cast<uint64_t>(size) > rest_.size()) {
    ok_ = false;
    return "";
  }
  std::string text(rest_.substr(0, static_cast<size_t>(size)));
  rest_.remove_prefix(static_cast<size_t>(size));
  return text;
}

std::string EncodeState(const WorkspaceState& s) {
  FieldWriter out;
  const auto write = [&out](int64_t value) { out.Int(value); };
  out.Int(kVersion);
  out.Text(s.workspace);
  out.Int(s.sequence);
  out.Text(s.head);
  out.Int(s.clock_us);
  for (const int64_t sum : s.sums) out.Int(sum);
  out.Int(s.cap ? 1 : 0);
  out.Int(s.cap.value_or(0));
  for (const int64_t value :
       {s.frozen, s.open_holds, int64_t{s.details}, s.holds_opened, s.holds_closed, s.commands_seen,
        s.cut_us, s.cut_sequence, int64_t{s.current_is_hold}}) {
    out.Int(value);
  }
  out.Text(s.current);
  out.Text(s.archived_rollups);
  out.Int(static_cast<int64_t>(s.months.size()));
  for (const auto& [month, sums] : s.months) {
    out.Int(month);
    out.Int(sums.spent);
    out.Int(sums.held);
  }
  out.Int(static_cast<int64_t>(s.holds.size()));
  for (const auto& [id, sums] : s.holds) {
    out.Text(id);
    HoldFields(sums, write);
    out.Text(sums.admission);
    out.Text(sums.closing);
  }
  out.Int(static_cast<int64_t>(s.commands.size()));
  for (const auto& [id, sums] : s.commands) {
    out.Text(id);
    CommandFields(sums, write);
    out.Text(sums.detail);
    out.Text(sums.memo);
  }
  out.Int(static_cast<int64_t>(s.moved.size()));
  for (const auto& [key, amount] : s.moved) {
    out.Text(key);
    out.Int(amount);
  }
  out.Int(static_cast<int64_t>(s.leases.size()));
  for (const auto& [key, amount] : s.leases) {
    out.Text(key);
    out.Int(amount);
  }
  out.Text(s.archived_statements);
  out.Text(s.archived_commands);
  out.Int(s.statements_base_us);
  return out.Take();
}

std::optional<WorkspaceState> DecodeState(std::string_view bytes) {
  FieldReader in(bytes);
  const auto read = [&in](int64_t& value) { value = in.Int(); };
  const int64_t version = in.Int();
  if (version < kVersionWithoutCutSequence || version > kVersion) return std::nullopt;
  WorkspaceState s;
  s.workspace = in.Text();
  s.sequence = in.Int();
  s.head = in.Text();
  s.clock_us = in.Int();
  for (int64_t& sum : s.sums) sum = in.Int();
  const bool has_cap = in.Int() != 0;
  const int64_t cap = in.Int();
  if (has_cap) s.cap = cap;
  s.frozen = in.Int();
  s.open_holds = in.Int();
  s.details = in.Int() != 0;
  s.holds_opened = in.Int();
  s.holds_closed = in.Int();
  s.commands_seen = in.Int();
  s.cut_us = in.Int();
  s.cut_sequence = version == kVersionWithoutCutSequence ? s.sequence : in.Int();
  s.current_is_hold = in.Int() != 0;
  s.current = in.Text();
  s.archived_rollups = in.Text();
  for (int64_t count = in.Int(); count > 0 && in.ok(); --count) {
    const int64_t month = in.Int();
    s.months[month].spent = in.Int();
    s.months[month].held = in.Int();
  }
  for (int64_t count = in.Int(); count > 0 && in.ok(); --count) {
    HoldSums& sums = s.holds[in.Text()];
    HoldFields(sums, read);
    sums.admission = in.Text();
    sums.closing = in.Text();
  }
  for (int64_t count = in.Int(); count > 0 && in.ok(); --count) {
    CommandSums& sums = s.commands[in.Text()];
    CommandFields(sums, read);
    sums.detail = in.Text();
    sums.memo = in.Text();
  }
  for (int64_t count = in.Int(); count > 0 && in.ok(); --count) {
    const std::string key = in.Text();
    s.moved[key] = in.Int();
  }
  for (int64_t count = version > kVersionWithoutLeases ? in.Int() : 0; count > 0 && in.ok();
       --count) {
    const std::string key = in.Text();
    s.leases[key] = in.Int();
  }
  if (version > kVersionOnlyRollUps) {
    s.archived_statements = in.Text();
    s.archived_commands = in.Text();
    s.statements_base_us = in.Int();
  }
  if (!in.done()) return std::nullopt;
  return s;
}

}  // namespace tollgate::billing
