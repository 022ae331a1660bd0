#include "services/billing/verify/verify_entries.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "common/base/ledger_shard.h"
#include "common/base/try.h"
#include "services/billing/domain/chain.h"
#include "services/billing/storage/schema.h"
#include "services/billing/verify/verify_rules.h"

namespace tollgate::billing {
namespace {

using sql::Row;
using sql::SqlResult;

// Longer than holds can be corrected after their expiry, which is 24 h.
constexpr int64_t kCorrectableUs = 25LL * 3600 * 1'000'000;

bool IsPosted(Account account) { return account == Account::kPaid || account == Account::kGranted; }

bool IsCorrectable(const HoldSums& hold) {
  return hold.corrections == 0 &&
         (hold.terminal_kind == static_cast<int64_t>(EntryKind::kExpireCharge) ||
          hold.terminal_kind == static_cast<int64_t>(EntryKind::kExpireVoid));
}

// Amount that an entry adds to what the customer pays.
int64_t Spent(const Entry& entry) {
  if (entry.credit == Account::kRevenue && IsPosted(entry.debit)) return entry.amount_nano_usd;
  if (entry.debit == Account::kRevenue && IsPosted(entry.credit)) return -entry.amount_nano_usd;
  return 0;
}

// Parses "reason=dispute …"; -1 if the memo has no reason.
int64_t FreezeOf(const std::string& memo) {
  for (const Freeze freeze :
       {Freeze::kNone, Freeze::kOperator, Freeze::kDispute, Freeze::kFailedCheck}) {
    if (memo.starts_with("reason=" + std::string(FreezeName(freeze)) + ' ')) {
      return static_cast<int64_t>(freeze);
    }
  }
  return -1;
}

}  // namespace

EntryCheck::EntryCheck(sql::Connection& db, WorkspaceState& state, RowCheck& rows,
                       Findings& findings, const VerifyOptions& options, int64_t until_us,
                       RowSink* sink)
    : db_(db),
      state_(state),
      rows_(rows),
      findings_(findings),
      options_(options),
      shard_(LedgerShard(state.workspace)),
      until_us_(until_us > 0 ? until_us : std::numeric_limits<int64_t>::max()),
      sink_(sink) {
  for (const auto& [id, hold] : state_.holds) {
    if (hold.terminals > 0) expired_.emplace_back(hold.closed_us, id);
  }
  std::sort(expired_.begin(), expired_.end());
}

SqlResult<bool> EntryCheck::Page() {
  const std::string text = "SELECT " + std::string(kEntryColumns) +
                           " FROM entry WHERE shard = $1 AND workspace = $2 AND sequence > $3"
                           " ORDER BY sequence LIMIT " +
                           std::to_string(options_.page_entries);
  std::vector<Entry> page;
  bool ended = false;
  auto read = db_.Query(text, {shard_, state_.workspace, state_.sequence}, [&](const Row& row) {
    if (ended) return;
    Entry entry = ReadEntry(row);
    ended = entry.at_us >= until_us_;
    if (ended) return;
    page.push_back(std::move(entry));
    if (sink_ != nullptr) sink_->OnEntry(row);
  });
  if (!read.ok()) return Fail{std::move(read).error()};
  for (const Entry& entry : page) {
    TRY(CheckEntry(entry));
  }
  TRY(ForgetExpired());
  return !ended && page.size() == static_cast<size_t>(options_.page_entries);
}

SqlResult<void> EntryCheck::ForgetExpired() {
  while (!expired_.empty() && expired_.front().first < state_.clock_us - kCorrectableUs) {
    const std::string id = std::move(expired_.front().second);
    expired_.pop_front();
    const auto hold = state_.holds.find(id);
    // A hold of the newest operation is checked when the operation is complete.
    if (hold == state_.holds.end() || (state_.current_is_hold && state_.current == id)) continue;
    const HoldSums sums = std::move(hold->second);
    state_.holds.erase(hold);
    TRY(rows_.AddHold(id, sums));
  }
  return {};
}

SqlResult<void> EntryCheck::CloseGroup() {
  const std::string id = std::exchange(state_.current, "");
  if (id.empty()) return {};
  if (state_.current_is_hold) {
    const auto hold = state_.holds.find(id);
    if (hold == state_.holds.end() || hold->second.terminals == 0) return {};
    if (IsCorrectable(hold->second) && hold->second.closed_us >= state_.clock_us - kCorrectableUs) {
      return {};
    }
    // Erased first, because the check may move it back.
    const HoldSums sums = std::move(hold->second);
    state_.holds.erase(hold);
    return rows_.AddHold(id, sums);
  }
  const auto command = state_.commands.find(id);
  if (command == state_.commands.end() ||
      (command->second.posted == 0 && command->second.rejected == 0)) {
    return {};
  }
  auto done = rows_.AddCommand(id, command->second);
  state_.commands.erase(command);
  return done;
}

SqlResult<void> EntryCheck::CheckRest() {
  rows_.EndOfEntries();
  for (const auto& [id, hold] : state_.holds) {
    TRY(rows_.AddHold(id, hold));
  }
  for (const auto& [id, command] : state_.commands) {
    TRY(rows_.AddCommand(id, command));
  }
  return rows_.Flush();
}

SqlResult<void> EntryCheck::CheckEntry(const Entry& entry) {
  ++findings_.report().entries;
  const std::string name = "entry " + std::to_string(entry.sequence);
  const bool of_request = IsRequestKind(entry.kind);
  const bool is_note = IsNote(entry);
  if (!is_note && (entry.request != state_.current || of_request != state_.current_is_hold)) {
    TRY(CloseGroup());
    state_.current = entry.request;
    state_.current_is_hold = of_request;
  }
  if (entry.sequence != ++state_.sequence) {
    findings_.Report(name + " follows " + std::to_string(state_.sequence - 1) +
                     ": entries are missing");
    state_.sequence = entry.sequence;
  }
  if (entry.hash != EntryHash(state_.head, entry))
    findings_.Report(name + " does not match its hash");
  state_.head = entry.hash;
  if (entry.at_us < state_.clock_us && entry.kind != EntryKind::kClockRepair)
    findings_.Report(name + " is older than the one before it");
  state_.clock_us = entry.at_us;
  CheckShape(entry, name);
  AddToBalances(entry, name);
  AddFlags(entry);
  if (of_request) {
    AddToHold(entry, name);
  } else if (IsLeaseKind(entry.kind)) {
    AddToLease(entry, name);
  } else if (!is_note) {
    AddToCommand(entry, name);
  }
  return {};
}

void EntryCheck::CheckShape(const Entry& entry, const std::string& name) {
  if (entry.amount_nano_usd < 0) findings_.Report(name + " is negative");
  if (!IsKnownKind(entry.kind)) return findings_.Report(name + " is of an unknown kind");
  if (!MayMove(entry.kind, entry.debit, entry.credit)) {
    findings_.Report(name + " of kind " + std::string(EntryKindName(entry.kind)) +
                     " has wrong accounts: from " + std::string(AccountName(entry.debit)) + " to " +
                     std::string(AccountName(entry.credit)));
  }
  if (entry.debit == Account::kControl && entry.amount_nano_usd != 0) {
    findings_.Report(name + " has an amount that moves nothing");
  }
  if (!entry.detail.empty()) {
    state_.details = true;
    if (entry.detail.size() != 32) findings_.Report(name + " has a detail of a wrong size");
  } else if (state_.details && NeedsDetail(entry)) {
    findings_.Report(name + " has no detail, though entries before it have");
  }
}

void EntryCheck::AddToBalances(const Entry& entry, const std::string& name) {
  auto& sums = state_.sums;
  const auto sum = [&](Account account) -> int64_t& {
    return sums[std::min<size_t>(static_cast<size_t>(account), sums.size() - 1)];
  };
  if (entry.debit != entry.credit) {
    sum(entry.debit) -= entry.amount_nano_usd;
    sum(entry.credit) += entry.amount_nano_usd;
  }
  MonthSums& month = state_.months[entry.month];
  if (entry.credit == Account::kHeld) month.held += entry.amount_nano_usd;
  if (entry.debit == Account::kHeld) month.held -= entry.amount_nano_usd;
  month.spent += Spent(entry);

  const int64_t posted = sum(Account::kPaid) + sum(Account::kGranted);
  if (sum(Account::kPaid) < 0 || sum(Account::kGranted) < 0 || sum(Account::kHeld) < 0 ||
      sum(Account::kHeld) > posted) {
    findings_.Report("after " + name + " credit is negative or more is held than posted");
  }
  if (sum(Account::kFree) != -sum(Account::kHeld)) {
    findings_.Report("after " + name + " free is not -held");
  }
  if (sum(Account::kReceivable) > 0)
    findings_.Report("after " + name + " the receivable is negative");
  if (entry.kind == EntryKind::kHold && entry.amount_nano_usd > 0 && state_.cap &&
      month.spent + month.held > *state_.cap) {
    findings_.Report(name + " opened a hold beyond the cap");
  }
}

void EntryCheck::AddFlags(const Entry& entry) {
  if (entry.kind == EntryKind::kCapChange) {
    state_.cap.reset();
    int64_t cap = 0;
    constexpr std::string_view kPrefix = "cap=";
    const char* end = entry.memo.data() + entry.memo.size();
    if (entry.memo.starts_with(kPrefix) &&
        std::from_chars(entry.memo.data() + kPrefix.size(), end, cap).ec == std::errc()) {
      state_.cap = cap;
    }
  }
  if (entry.kind == EntryKind::kFreeze) state_.frozen = FreezeOf(entry.memo);
  if (entry.kind == EntryKind::kUnfreeze) state_.frozen = 0;
}

void EntryCheck::AddToHold(const Entry& entry, const std::string& name) {
  if (entry.kind == EntryKind::kLateCorrection) rows_.TakeBack(entry.request);
  HoldSums& hold = state_.holds[entry.request];
  const int64_t revenue =
      entry.credit == Account::kRevenue ? entry.amount_nano_usd : -entry.amount_nano_usd;
  const bool granted = entry.debit == Account::kGranted || entry.credit == Account::kGranted;
  switch (entry.kind) {
    case EntryKind::kHold:
      ++hold.opened;
      ++state_.open_holds;
      ++state_.holds_opened;
      hold.month = entry.month;
      hold.opened_us = entry.at_us;
      hold.first_authorized = entry.amount_nano_usd;
      hold.admission = entry.detail;
      hold.admission_entry = entry.sequence;
      [[fallthrough]];
    case EntryKind::kExtend:
      hold.held += entry.amount_nano_usd;
      hold.authorized += entry.amount_nano_usd;
      if (hold.terminals > 0) findings_.Report(name + " reserves for a closed hold");
      break;
    case EntryKind::kSettle:
    case EntryKind::kVoid:
    case EntryKind::kExpireCharge:
    case EntryKind::kExpireVoid:
      ++hold.terminals;
      --state_.open_holds;
      if (hold.admission_entry > state_.cut_sequence) ++state_.holds_closed;
      hold.terminal_kind = static_cast<int64_t>(entry.kind);
      hold.closed_us = entry.at_us;
      hold.closing = entry.detail;
      hold.closing_entry = entry.sequence;
      hold.held -= entry.amount_nano_usd;
      if (hold.held != 0) findings_.Report(name + " does not release exactly the held amount");
      if (IsCorrectable(hold)) expired_.emplace_back(entry.at_us, entry.request);
      break;
    case EntryKind::kLateCorrection:
      if (hold.terminals == 0 || hold.terminal_kind == static_cast<int64_t>(EntryKind::kVoid)) {
        findings_.Report(name + " corrects a hold that was not charged");
      }
      ++hold.corrections;
      if (!entry.detail.empty()) {
        hold.closing = entry.detail;
        hold.closing_entry = entry.sequence;
      }
      if (entry.debit == Account::kControl) break;
      if (entry.month != hold.month) {
        hold.moved += Spent(entry);
        hold.moved_month = entry.month;
      }
      [[fallthrough]];
    case EntryKind::kCharge:
      hold.charged += revenue;
      if (granted) hold.charged_granted += revenue;
      break;
    default:
      hold.overrun += revenue;
      break;
  }
  const bool late = hold.corrections > 0;
  if (!late && hold.opened == 1 && entry.month != hold.month) {
    findings_.Report(name + " counts towards another month than its hold");
  }
  if (hold.opened != 1) {
    findings_.Report(name + " belongs to no hold, or to one that was opened twice");
  }
  if (hold.terminals > 1) findings_.Report(name + " closes a hold a second time");
  if (!late && hold.charged > hold.authorized) findings_.Report(name + " charges too much");
}

void EntryCheck::AddToLease(const Entry& entry, const std::string& name) {
  const auto lease = state_.leases.try_emplace(LesseeKey(entry.request, entry.month)).first;
  lease->second +=
      entry.kind == EntryKind::kLeaseGrant ? entry.amount_nano_usd : -entry.amount_nano_usd;
  if (lease->second < 0) findings_.Report(name + " takes more out of a lease than it reserves");
  if (lease->second == 0) state_.leases.erase(lease);
}

void EntryCheck::AddToCommand(const Entry& entry, const std::string& name) {
  const auto [found, fresh] = state_.commands.try_emplace(entry.request);
  CommandSums& command = found->second;
  if (fresh) {
    ++state_.commands_seen;
    command.first_us = entry.at_us;
  } else if (command.requested > 0 && command.posted == 0 && command.rejected == 0) {
    command.decided_us = entry.at_us;
  }
  if (!entry.detail.empty()) {
    command.detail = entry.detail;
    command.memo = entry.memo;
    command.entry = entry.sequence;
  }
  switch (entry.kind) {
    case EntryKind::kCorrectionRequested:
      ++command.requested;
      return;
    case EntryKind::kCorrectionRejected:
      ++command.rejected;
      return;
    case EntryKind::kFreeze:
      // A chargeback also posts this entry.
      if (command.kind == 0) {
        command.kind = static_cast<int64_t>(CommandKind::kFreeze);
        command.amount = FreezeOf(entry.memo);
      }
      break;
    case EntryKind::kUnfreeze:
      if (command.kind == 0) command.kind = static_cast<int64_t>(CommandKind::kUnfreeze);
      break;
    default:
      command.kind = CommandKindOf(entry.kind);
      command.amount += entry.amount_nano_usd;
      break;
  }
  if (entry.kind == EntryKind::kGrant || entry.kind == EntryKind::kTopup) {
    command.granted = entry.kind == EntryKind::kGrant ? 1 : 0;
  }
  ++command.posted;
  if (command.rejected > 0) findings_.Report(name + " posts a rejected command");
}

}  // namespace tollgate::billing
