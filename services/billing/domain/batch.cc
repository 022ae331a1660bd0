// Books and balances of a batch: entries, their effect, invariants, undoing.
#include "services/billing/domain/batch.h"

#include <algorithm>
#include <limits>

#include "services/billing/domain/chain.h"

namespace tollgate::billing {
namespace {
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
}

Wallet& Batch::WalletOf(const std::string& workspace) {
  if (!wallet_) {
    wallet_ = &state_.wallets[workspace];
    wallet_->workspace = workspace;
  }
  return *wallet_;
}

Month& Batch::MonthOf(int32_t month) {
  const std::string key = MonthKey(wallet_->workspace, month);
  const auto found = state_.months.find(key);
  if (!before_.months.contains(key)) {
    before_.months[key] =
        found == state_.months.end() ? std::nullopt : std::optional<Month>(found->second);
  }
  if (found != state_.months.end()) return found->second;
  return state_.months.emplace(key, Month{wallet_->workspace, month}).first->second;
}

Hold* Batch::FindHold(const Id& id) {
  const auto found = state_.holds.find(id);
  return found == state_.holds.end() ? nullptr : &found->second;
}

void Batch::Changed(Hold& hold) { out_.changed_holds.push_back(hold.id); }

void Batch::Post(EntryKind kind, Account debit, Account credit, int64_t amount, int32_t month,
                 const std::string& request, const std::string& memo) {
  Entry entry;
  entry.workspace = wallet_->workspace;
  entry.sequence = ++wallet_->sequence;
  entry.kind = kind;
  entry.request = request;
  entry.debit = debit;
  entry.credit = credit;
  entry.amount = amount;
  entry.month = month;
  entry.at_us = at_us_;
  entry.memo = memo;
  entry.hash = EntryHash(wallet_->head, entry);
  wallet_->head = entry.hash;
  wallet_->clock_us = at_us_;
  Month& row = MonthOf(month);
  Move(debit, -amount, row);
  Move(credit, amount, row);
  // What customers pay counts against the month; what the operator bears does not.
  const auto posted = [](Account account) {
    return account == Account::kPaid || account == Account::kGranted;
  };
  if (credit == Account::kRevenue && posted(debit)) row.spent += amount;
  if (debit == Account::kRevenue && posted(credit)) row.spent -= amount;
  out_.wallets.push_back(wallet_->workspace);
  out_.months.push_back(MonthKey(wallet_->workspace, month));
  out_.entries.push_back(std::move(entry));
}

void Batch::Move(Account account, int64_t amount, Month& month) {
  switch (account) {
    case Account::kPaid:
      wallet_->paid += amount;
      break;
    case Account::kGranted:
      wallet_->granted += amount;
      break;
    case Account::kHeld:
      wallet_->held += amount;
      month.held += amount;
      break;
    default:
      break;  // accounts without a live balance: their sums are in the entries
  }
}

int64_t Batch::Room(const std::optional<int64_t>& cap, int32_t month) {
  if (!cap) return kMax;
  const Month& row = MonthOf(month);
  return std::max<int64_t>(0, *cap - row.spent - row.held);
}

std::optional<int64_t> Batch::RunningCap(const Wallet& wallet, const Hold& hold) {
  if (!wallet.cap || !hold.cap) return std::nullopt;
  return std::max(*wallet.cap, *hold.cap);
}

int64_t Batch::Grow(Hold& hold, int64_t amount) {
  const int64_t take =
      std::min({amount, wallet_->available(), Room(RunningCap(*wallet_, hold), hold.month)});
  if (take <= 0) return 0;
  hold.authorized += take;
  Post(EntryKind::kExtend, Account::kFree, Account::kHeld, take, hold.month, hold.id.ToBytes());
  return take;
}

void Batch::Check(const Op& op, std::string& broken) const {
  if (wallet_) {
    if (wallet_->paid < 0 || wallet_->granted < 0) broken = "negative credit";
    if (wallet_->held < 0 || wallet_->held > wallet_->posted())
      broken = "held outside posted credit";
    if (wallet_->open_holds < 0 || (wallet_->open_holds == 0 && wallet_->held != 0)) {
      broken = "open holds do not match what is held";
    }
    for (const auto& [key, before] : before_.months) {
      const Month& month = state_.months.at(key);
      if (month.held < 0 || month.spent < 0) broken = "negative month";
    }
  }
  const auto found = state_.holds.find(op.id);
  if (found != state_.holds.end() && !op.id.empty()) {
    const Hold& hold = found->second;
    const bool corrected = hold.state == HoldState::kCorrected;
    if (hold.charged < 0 || hold.overrun < 0 || hold.charged_granted < 0 ||
        hold.charged_granted > hold.charged) {
      broken = "negative charge";
    }
    if (!corrected && hold.charged > hold.authorized) broken = "charged above what was authorized";
    if (before_.hold && before_.hold->state != HoldState::kOpen && hold.state == HoldState::kOpen) {
      broken = "a closed hold opened again";
    }
    if (hold.state != HoldState::kOpen) {
      const Int128 rest = hold.CostPico() - Int128{kPicoPerNano} * (hold.charged + hold.overrun);
      if (rest < 0 || rest >= kPicoPerNano) broken = "charge does not match the price of the usage";
    }
  }
  // Double entry: what the balances moved is what the entries say.
  int64_t paid = 0;
  int64_t granted = 0;
  int64_t held = 0;
  for (size_t i = before_.entries; i < out_.entries.size(); ++i) {
    const Entry& entry = out_.entries[i];
    if (entry.amount < 0) broken = "negative entry";
    const auto net = [&entry](Account account) {
      return (entry.credit == account ? entry.amount : 0) -
             (entry.debit == account ? entry.amount : 0);
    };
    paid += net(Account::kPaid);
    granted += net(Account::kGranted);
    held += net(Account::kHeld);
    if (net(Account::kFree) != -net(Account::kHeld)) broken = "control accounts out of balance";
  }
  const Wallet none;
  const Wallet& was = before_.wallet ? *before_.wallet : none;
  const Wallet& is = wallet_ ? *wallet_ : none;
  if (is.paid - was.paid != paid || is.granted - was.granted != granted ||
      is.held - was.held != held) {
    broken = "balances moved without entries";
  }
}

void Batch::Undo(const Op& op, Before& before) {
  if (wallet_) {
    if (before.wallet) {
      *wallet_ = std::move(*before.wallet);
    } else {
      state_.wallets.erase(op.workspace);
    }
  }
  for (auto& [key, month] : before.months) {
    if (month) {
      state_.months[key] = *month;
    } else {
      state_.months.erase(key);
    }
  }
  if (before.hold) {
    state_.holds[op.id] = std::move(*before.hold);
  } else if (!op.id.empty()) {
    state_.holds.erase(op.id);
  }
  for (size_t i = before.commands; i < out_.commands.size(); ++i) {
    state_.commands.erase(out_.commands[i]);
  }
  out_.entries.resize(before.entries);
  out_.wallets.resize(before.wallets);
  out_.months.resize(before.month_keys);
  out_.new_holds.resize(before.new_holds);
  out_.changed_holds.resize(before.changed_holds);
  out_.recorded_holds.resize(before.recorded);
  out_.commands.resize(before.commands);
}

}  // namespace tollgate::billing
