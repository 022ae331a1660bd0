// What the operations share: access to rows, entries and their effect on balances, undo.
#include "services/billing/domain/batch.h"

#include <algorithm>
#include <limits>

#include "services/billing/domain/chain.h"

namespace tollgate::billing {
namespace {
constexpr int64_t kMaxAmount = std::numeric_limits<int64_t>::max();
// Above any request. With the largest rate every cost in nano-USD still fits 64 bits.
constexpr int64_t kMaxTokens = int64_t{1} << 33;

// Amount that an entry adds to the month's spend, which is what the customer pays. An overrun does
// not count: the operator pays it.
int64_t Spent(const Entry& entry) {
  const auto posted = [](Account account) {
    return account == Account::kPaid || account == Account::kGranted;
  };
  if (entry.credit == Account::kRevenue && posted(entry.debit)) return entry.amount_nano_usd;
  if (entry.debit == Account::kRevenue && posted(entry.credit)) return -entry.amount_nano_usd;
  return 0;
}

// Amounts that a hold adds to the roll-ups, times sign. All zero until the hold is closed.
UsageChange UsageOf(const Hold& hold, int sign) {
  UsageChange change;
  if (hold.state == HoldState::kOpen) return change;
  const Usage usage = hold.BillableUsage();
  const bool generated = usage.prompt > 0 || usage.completion > 0;
  (generated ? change.requests : change.free_requests) = sign;
  change.usage = {sign * usage.prompt, sign * usage.cached, sign * usage.cache_write,
                  sign * usage.completion, sign * usage.reasoning};
  change.charged_nano_usd = sign * hold.charged_nano_usd;
  change.overrun_nano_usd = sign * hold.overrun_nano_usd;
  return change;
}

bool IsNothing(const UsageChange& change) {
  return change.requests == 0 && change.free_requests == 0 && change.usage == Usage() &&
         change.charged_nano_usd == 0 && change.overrun_nano_usd == 0;
}
}  // namespace

bool IsTokenCount(int64_t tokens) { return tokens >= 0 && tokens <= kMaxTokens; }

bool IsValidUsage(const Usage& usage) {
  return IsTokenCount(usage.prompt) && IsTokenCount(usage.completion) &&
         IsTokenCount(usage.cached) && IsTokenCount(usage.cache_write) &&
         IsTokenCount(usage.reasoning);
}

Usage Clamped(Usage usage) {
  usage.cached = std::min(usage.cached, usage.prompt);
  usage.cache_write = std::min(usage.cache_write, usage.prompt);
  usage.reasoning = std::min(usage.reasoning, usage.completion);
  return usage;
}

Reply ReplyFor(const Hold& hold, Deny denied_by) {
  Reply reply;
  reply.ok = denied_by == Deny::kNone;
  reply.denied_by = denied_by;
  reply.authorized_nano_usd = hold.authorized_nano_usd;
  reply.charged_nano_usd = hold.charged_nano_usd;
  return reply;
}

Wallet& Batch::FindOrCreateWallet(const std::string& workspace) {
  if (!wallet_) {
    wallet_ = &state_.wallets[workspace];
    wallet_->workspace = workspace;
    out_.new_wallets.push_back(workspace);
  }
  return *wallet_;
}

Month& Batch::FindOrCreateMonth(int32_t month) {
  const std::string key = MonthKey(wallet_->workspace, month);
  const auto found = state_.months.find(key);
  if (!before_.months.contains(key)) {
    before_.months[key] =
        found == state_.months.end() ? std::nullopt : std::optional<Month>(found->second);
  }
  if (found != state_.months.end()) return found->second;
  return state_.months.emplace(key, Month{wallet_->workspace, month}).first->second;
}

KeyMonth* Batch::FindKeyMonth(const std::string& key_id, int32_t month) {
  const std::string key = KeyMonthKey(wallet_->workspace, key_id, month);
  const auto found = state_.key_months.find(key);
  if (!before_.key_months.contains(key)) {
    before_.key_months[key] =
        found == state_.key_months.end() ? std::nullopt : std::optional<KeyMonth>(found->second);
  }
  return found == state_.key_months.end() ? nullptr : &found->second;
}

Hold* Batch::FindHold(const Id& id) {
  const auto found = state_.holds.find(id);
  return found == state_.holds.end() ? nullptr : &found->second;
}

void Batch::MarkChanged(const Hold& hold) { out_.changed_holds.push_back(hold.id); }

void Batch::Close(Hold& hold, HoldState state) {
  hold.state = state;
  hold.closed_us = now_us_;
  --wallet_->open_holds;
  MarkChanged(hold);
  out_.recorded_holds.push_back(hold.id);
  PayReceivable(hold.id.ToHex());
}

void Batch::Release(Hold& hold, EntryKind terminal, const std::string& memo) {
  Post(terminal, Account::kHeld, Account::kFree, hold.authorized_nano_usd, hold.month,
       hold.id.ToBytes(), memo.substr(0, 256), ClosingDetail(hold));
}

void Batch::Raise(Hold& hold, int64_t amount_nano_usd) {
  const int64_t raised = std::min({amount_nano_usd, wallet_->available_nano_usd(),
                                   CapHeadroom(EffectiveCap(*wallet_, hold), hold.month),
                                   QuotaHeadroom(hold, hold.month)});
  if (raised <= 0) return;
  hold.authorized_nano_usd += raised;
  Post(EntryKind::kExtend, Account::kFree, Account::kHeld, raised, hold.month, hold.id.ToBytes());
}

int64_t Batch::CapHeadroom(const std::optional<int64_t>& cap_nano_usd, int32_t month) {
  if (!cap_nano_usd) return kMaxAmount;
  const Month& row = FindOrCreateMonth(month);
  return std::max<int64_t>(0, *cap_nano_usd - row.spent_nano_usd - row.held_nano_usd);
}

int64_t Batch::QuotaHeadroom(const Hold& hold, int32_t month) {
  if (!hold.key_quota_nano_usd) return kMaxAmount;
  const KeyMonth use = UseOfQuota(hold, month);
  return std::max<int64_t>(0, *hold.key_quota_nano_usd - use.spent_nano_usd - use.held_nano_usd);
}

KeyMonth Batch::UseOfQuota(const Hold& hold, int32_t month) {
  KeyMonth use;
  const auto add = [&](const std::string& key_id) {
    const KeyMonth* row = FindKeyMonth(key_id, month);
    if (row == nullptr) return;
    use.spent_nano_usd += row->spent_nano_usd;
    use.held_nano_usd += row->held_nano_usd;
  };
  add(hold.key_id);
  for (const std::string& key_id : hold.quota_keys) add(key_id);
  return use;
}

std::optional<int64_t> Batch::EffectiveCap(const Wallet& wallet, const Hold& hold) {
  if (!wallet.cap_nano_usd || !hold.cap_nano_usd) return std::nullopt;
  return std::max(*wallet.cap_nano_usd, *hold.cap_nano_usd);
}

void Batch::Post(EntryKind kind, Account debit, Account credit, int64_t amount_nano_usd,
                 int32_t month, const std::string& request, const std::string& memo,
                 const std::string& detail) {
  Entry entry;
  entry.workspace = wallet_->workspace;
  entry.sequence = ++wallet_->sequence;
  entry.kind = kind;
  entry.request = request;
  entry.debit = debit;
  entry.credit = credit;
  entry.amount_nano_usd = amount_nano_usd;
  entry.month = month;
  entry.at_us = at_us_;
  entry.memo = memo;
  entry.detail = detail;
  entry.hash = EntryHash(wallet_->head, entry);
  wallet_->head = entry.hash;
  wallet_->clock_us = at_us_;
  Month& row = FindOrCreateMonth(month);
  Move(debit, -amount_nano_usd, row);
  Move(credit, amount_nano_usd, row);
  row.spent_nano_usd += Spent(entry);
  if (key_hold_ != nullptr) MoveKeyMonth(entry);
  out_.wallets.push_back(wallet_->workspace);
  out_.months.push_back(MonthKey(wallet_->workspace, month));
  out_.entries.push_back(std::move(entry));
}

void Batch::MoveKeyMonth(const Entry& entry) {
  const bool has_quota = key_hold_->key_quota_nano_usd.has_value();
  const int64_t spent = Spent(entry);
  int64_t held = 0;
  if (has_quota && entry.credit == Account::kHeld) held += entry.amount_nano_usd;
  if (has_quota && entry.debit == Account::kHeld) held -= entry.amount_nano_usd;
  if (spent == 0 && held == 0) return;  // not the key's: a note or the workspace's debt
  KeyMonth* row = FindKeyMonth(key_hold_->key_id, entry.month);
  // If a late correction counts towards another month than its request, the roll-ups of that month
  // do not contain it. A row created from them later would miss it, so it is created now.
  const bool is_moved = entry.month != key_hold_->month;
  if (row == nullptr && !has_quota && !is_moved) return;
  const std::string key = KeyMonthKey(wallet_->workspace, key_hold_->key_id, entry.month);
  if (row == nullptr) {
    row = &state_.key_months
               .emplace(key, KeyMonth{wallet_->workspace, key_hold_->key_id, entry.month})
               .first->second;
  }
  row->spent_nano_usd += spent;
  row->held_nano_usd += held;
  out_.key_months.push_back(key);
}

void Batch::Move(Account account, int64_t amount_nano_usd, Month& month) {
  switch (account) {
    case Account::kPaid:
      wallet_->paid_nano_usd += amount_nano_usd;
      break;
    case Account::kGranted:
      wallet_->granted_nano_usd += amount_nano_usd;
      break;
    case Account::kHeld:
      wallet_->held_nano_usd += amount_nano_usd;
      month.held_nano_usd += amount_nano_usd;
      break;
    case Account::kReceivable:
      wallet_->receivable_nano_usd -= amount_nano_usd;
      break;
    default:
      break;  // accounts without a stored balance: their sums follow from the entries
  }
}

void Batch::SaveBefore(const Operation& operation) {
  const Id request_id = RequestIdOf(operation);
  before_ = {};
  if (const auto* decide = std::get_if<Decide>(&operation)) {
    const auto found = state_.commands.find(CommandKey(decide->workspace, decide->command_id));
    if (found != state_.commands.end()) before_.command = found->second;
  }
  if (const auto* resolve = std::get_if<ResolveDeadLetter>(&operation)) {
    const auto found = state_.dead_letters.find(DeadLetterKey(request_id, resolve->number));
    if (found != state_.dead_letters.end()) before_.dead_letter = found->second;
  }
  if (wallet_) before_.wallet = *wallet_;
  if (const Hold* hold = FindHold(request_id)) before_.hold = *hold;
  before_.entries = out_.entries.size();
  before_.wallets = out_.wallets.size();
  before_.new_wallets = out_.new_wallets.size();
  before_.month_keys = out_.months.size();
  before_.key_month_keys = out_.key_months.size();
  before_.new_holds = out_.new_holds.size();
  before_.changed_holds = out_.changed_holds.size();
  before_.recorded = out_.recorded_holds.size();
  before_.commands = out_.commands.size();
  before_.decided = out_.decided_commands.size();
  before_.resolved = out_.resolved_dead_letters.size();
  before_.audit_notes = out_.audit_notes.size();
  before_.idempotency = out_.idempotency_keys.size();
  before_.leases = out_.leases.size();
}

void Batch::RecordUsageChange(const Id& request_id) {
  const Hold* hold = FindHold(request_id);
  if (hold == nullptr || hold->tombstone()) return;
  UsageChange change = UsageOf(*hold, 1);
  if (before_.hold) change += UsageOf(*before_.hold, -1);
  if (IsNothing(change)) return;
  change.workspace = hold->workspace;
  change.key_id = hold->key_id;
  change.model = hold->model;
  change.admitted_us = hold->created_us;
  out_.usage_changes.push_back(std::move(change));
}

void Batch::Undo(const std::string& workspace, const Id& request_id) {
  if (wallet_) {
    if (before_.wallet) {
      *wallet_ = std::move(*before_.wallet);
    } else {
      state_.wallets.erase(workspace);
    }
  }
  for (auto& [key, month] : before_.months) {
    if (month) {
      state_.months[key] = *month;
    } else {
      state_.months.erase(key);
    }
  }
  for (auto& [key, month] : before_.key_months) {
    if (month) {
      state_.key_months[key] = *month;
    } else {
      state_.key_months.erase(key);
    }
  }
  for (auto& [key, row] : before_.idempotency_keys) {
    if (row) {
      state_.idempotency_keys[key] = std::move(*row);
    } else {
      state_.idempotency_keys.erase(key);
    }
  }
  if (before_.lease_name) {
    const std::string key = LeaseKey(*before_.lease_name);
    if (before_.lease) {
      state_.leases[key] = std::move(*before_.lease);
    } else {
      state_.leases.erase(key);
    }
  }
  if (before_.command) {
    const std::string key = CommandKey(workspace, before_.command->command_id);
    state_.commands[key] = std::move(*before_.command);
  }
  if (before_.dead_letter) {
    const std::string key = DeadLetterKey(request_id, before_.dead_letter->number);
    state_.dead_letters[key] = std::move(*before_.dead_letter);
  }
  if (before_.hold) {
    state_.holds[request_id] = std::move(*before_.hold);
  } else if (!request_id.empty()) {
    state_.holds.erase(request_id);
  }
  for (size_t i = before_.commands; i < out_.commands.size(); ++i) {
    state_.commands.erase(out_.commands[i]);
  }
  out_.entries.resize(before_.entries);
  out_.wallets.resize(before_.wallets);
  out_.new_wallets.resize(before_.new_wallets);
  out_.months.resize(before_.month_keys);
  out_.key_months.resize(before_.key_month_keys);
  out_.new_holds.resize(before_.new_holds);
  out_.changed_holds.resize(before_.changed_holds);
  out_.recorded_holds.resize(before_.recorded);
  out_.commands.resize(before_.commands);
  out_.decided_commands.resize(before_.decided);
  out_.resolved_dead_letters.resize(before_.resolved);
  out_.audit_notes.resize(before_.audit_notes);
  out_.idempotency_keys.resize(before_.idempotency);
  out_.leases.resize(before_.leases);
}

}  // namespace tollgate::billing
