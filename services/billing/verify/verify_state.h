// State of the verification of a workspace after some of its entries: everything that checking the
// next entries needs. Written to the state file of a run and to the archive, so that a later run
// can continue from there.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "services/billing/domain/types.h"

namespace tollgate::billing {

// Sums of the entries of one hold. Amounts in nano-USD.
struct HoldSums {
  int64_t opened = 0;
  int64_t terminals = 0;
  int64_t terminal_kind = 0;
  int64_t corrections = 0;
  int64_t first_authorized = 0;
  int64_t authorized = 0;
  int64_t held = 0;
  int64_t charged = 0;
  int64_t charged_granted = 0;
  int64_t overrun = 0;
  int64_t month = 0;
  int64_t opened_us = 0;
  int64_t closed_us = 0;
  int64_t admission_entry = 0;  // sequence
  int64_t closing_entry = 0;
  // Spend that a late correction moved to another month, and that month.
  int64_t moved = 0;
  int64_t moved_month = 0;
  std::string admission;  // details
  std::string closing;
};

// Values of the entries of one command.
struct CommandSums {
  int64_t kind = 0;        // kind of the command, from its entries; 0: unknown
  int64_t amount = 0;      // nano-USD
  int64_t granted = -1;    // -1: unknown
  int64_t first_us = 0;    // entry that requested or posted it
  int64_t decided_us = 0;  // entry after a request
  int64_t requested = 0;
  int64_t posted = 0;
  int64_t rejected = 0;
  int64_t entry = 0;   // sequence of the newest entry with a detail
  std::string detail;  // detail of that entry
  std::string memo;    // memo of that entry
};

struct MonthSums {
  int64_t spent = 0;
  int64_t held = 0;
};

struct WorkspaceState {
  std::string workspace;
  int64_t sequence = 0;
  std::string head = std::string(32, '\0');
  int64_t clock_us = 0;
  std::array<int64_t, 16> sums{};  // nano-USD, by Account
  std::optional<int64_t> cap;
  int64_t frozen = 0;
  int64_t open_holds = 0;
  bool details = false;  // an entry with a detail was seen
  // Counted since the cut.
  int64_t holds_opened = 0;
  int64_t holds_closed = 0;
  int64_t commands_seen = 0;
  std::map<int64_t, MonthSums> months;
  // Holds that are open, expired but still correctable, or of the newest entry.
  std::map<std::string, HoldSums> holds;
  std::map<std::string, CommandSums> commands;  // pending, or of the newest entry
  std::string current;                          // request or command of the newest entry
  bool current_is_hold = false;
  std::map<std::string, int64_t> leases;  // reserved amount by LesseeKey; not 0
  // Spend by key and month that late corrections moved.
  std::map<std::string, int64_t> moved;  // MovedKey
  // Archive from which the stream starts: the time of its cut, and a digest of the roll-ups before.
  // 0: the stream starts with entry 1.
  int64_t cut_us = 0;
  int64_t cut_sequence = 0;  // newest archived entry
  // Digests of rows that the database keeps of archived months (verify_digests.h); empty in
  // archives of earlier versions.
  std::string archived_rollups, archived_commands, archived_statements;
  // The base of the roll-ups at the archive (rollup_cut.base_us). It moves when they are built
  // again.
  int64_t statements_base_us = 0;

  // The entries so far are archived; those that follow are counted from zero.
  void BeginAfterCut(int64_t us) {
    cut_us = us;
    cut_sequence = sequence;
    holds_opened = holds_closed = 0;
  }
};
std::string MovedKey(const std::string& key_id, int64_t month);
std::string LesseeKey(const std::string& lessee, int64_t month);

std::string EncodeState(const WorkspaceState& state);
std::optional<WorkspaceState> DecodeState(std::string_view bytes);

// Writes length-prefixed fields, for states and files.
class FieldWriter {
 public:
  void Int(int64_t value);
  void Text(std::string_view text);
  std::string Take() { return std::move(out_); }

 private:
  std::string out_;
};
class FieldReader {
 public:
  explicit FieldReader(std::string_view bytes) : rest_(bytes) {}
  int64_t Int();
  std::string Text();
  bool ok() const { return ok_; }
  bool done() const { return ok_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace tollgate::billing
