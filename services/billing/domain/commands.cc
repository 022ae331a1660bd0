// Commands of owners and operators: add credit, set the cap, open a wallet, repair the clock.
#include "common/base/clock.h"
#include "services/billing/domain/batch.h"
#include "services/billing/domain/chain.h"

namespace tollgate::billing {
namespace {

// 10^9 USD, so that sums of posted credit stay far below 64 bits.
constexpr int64_t kMaxCreditNanoUsd = 1'000'000'000 * kNanoPerUsd;

bool IsCommandId(std::string_view text) { return !text.empty() && text.size() <= 64; }

bool IsValid(const AddCredit& command) {
  return IsCommandId(command.command_id) && command.amount_nano_usd > 0 &&
         command.amount_nano_usd <= kMaxCreditNanoUsd && command.reason.size() <= 512 &&
         command.actor.size() <= 128;
}

bool IsValid(const SetCap& command) {
  return IsCommandId(command.command_id) && command.cap_nano_usd.value_or(0) >= 0 &&
         command.actor.size() <= 128;
}

bool IsValid(const RepairClock& command) {
  return IsCommandId(command.command_id) && command.reason.size() <= 512 &&
         command.actor.size() <= 128;
}

}  // namespace

Balance Batch::CurrentBalance() {
  return BalanceOf(*wallet_, &FindOrCreateMonth(UtcMonth(now_us_)), now_us_);
}

Reply Batch::Execute(const AddCredit& command) {
  if (!IsValid(command)) return Refuse(Deny::kInvalid);
  const int64_t amount = command.amount_nano_usd;
  const std::string key = CommandKey(command.workspace, command.command_id);
  if (const auto stored = state_.commands.find(key); stored != state_.commands.end()) {
    const Command& earlier = stored->second;
    if (earlier.kind != CommandKind::kAddCredit || earlier.amount_nano_usd != amount ||
        earlier.granted != command.granted) {
      return Refuse(Deny::kIdReuse);
    }
  } else {
    if (command.open_only && wallet_ == nullptr) return Refuse(Deny::kUnknownWorkspace);
    const Wallet& wallet = FindOrCreateWallet(command.workspace);
    if (wallet.posted_nano_usd() > kMaxCreditNanoUsd - amount) return Refuse(Deny::kInvalid);
    Command added;
    added.workspace = command.workspace;
    added.command_id = command.command_id;
    added.kind = CommandKind::kAddCredit;
    added.amount_nano_usd = amount;
    added.granted = command.granted;
    added.at_us = at_us_;
    added.actor = command.actor;
    added.reason = command.reason;
    const std::string detail = CommandDetail(added);
    state_.commands.emplace(key, std::move(added));
    out_.commands.push_back(key);
    Post(command.granted ? EntryKind::kGrant : EntryKind::kTopup,
         command.granted ? Account::kPromo : Account::kFunding,
         command.granted ? Account::kGranted : Account::kPaid, amount, UtcMonth(now_us_),
         command.command_id, command.actor + ": " + command.reason, detail);
    PayReceivable(command.command_id);
    Audit(command, command.granted ? "credit.grant" : "credit.add", command.command_id,
          NanoToDecimalUsd(amount) + " USD: " + command.reason, command.command_id);
  }
  Reply reply;
  reply.ok = true;
  reply.balance = CurrentBalance();
  return reply;
}

Reply Batch::Execute(const SetCap& command) {
  if (!IsValid(command)) return Refuse(Deny::kInvalid);
  const std::optional<int64_t>& cap = command.cap_nano_usd;
  const std::string key = CommandKey(command.workspace, command.command_id);
  if (const auto stored = state_.commands.find(key); stored != state_.commands.end()) {
    const Command& earlier = stored->second;
    if (earlier.kind != CommandKind::kSetCap || earlier.cap_nano_usd != cap) {
      return Refuse(Deny::kIdReuse);
    }
  } else {
    if (command.open_only && wallet_ == nullptr) return Refuse(Deny::kUnknownWorkspace);
    FindOrCreateWallet(command.workspace).cap_nano_usd = cap;
    Command set;
    set.workspace = command.workspace;
    set.command_id = command.command_id;
    set.kind = CommandKind::kSetCap;
    set.cap_nano_usd = cap;
    set.at_us = at_us_;
    set.actor = command.actor;
    const std::string detail = CommandDetail(set);
    state_.commands.emplace(key, std::move(set));
    out_.commands.push_back(key);
    // verify.cc reads the cap from this memo.
    const std::string memo = "cap=" + (cap ? std::to_string(*cap) : "none") + " " + command.actor;
    Post(EntryKind::kCapChange, Account::kControl, Account::kControl, 0, UtcMonth(now_us_),
         command.command_id, memo, detail);
    Audit(command, "cap.update", command.workspace, cap ? NanoToDecimalUsd(*cap) + " USD" : "none",
          command.command_id);
  }
  Reply reply;
  reply.ok = true;
  reply.balance = CurrentBalance();
  return reply;
}

Reply Batch::Execute(const OpenWallet& command) {
  if (wallet_ == nullptr) {
    FindOrCreateWallet(command.workspace);
    out_.wallets.push_back(command.workspace);
    Audit(command, "wallet.open", command.workspace, "", command.call_id);
  }
  Reply reply;
  reply.ok = true;
  reply.balance = CurrentBalance();
  return reply;
}

Reply Batch::Execute(const RepairClock& command) {
  if (!IsValid(command) || !wallet_) return Refuse(Deny::kInvalid);
  Reply reply;
  reply.ok = true;
  const std::string key = CommandKey(command.workspace, command.command_id);
  if (const auto stored = state_.commands.find(key); stored != state_.commands.end()) {
    return stored->second.kind == CommandKind::kRepairClock ? reply : Refuse(Deny::kIdReuse);
  }
  reply.moved_back_us = wallet_->clock_us - now_us_;
  if (reply.moved_back_us <= 0) {
    reply.moved_back_us = 0;
    return reply;
  }
  at_us_ = now_us_;
  Command repaired;
  repaired.workspace = command.workspace;
  repaired.command_id = command.command_id;
  repaired.kind = CommandKind::kRepairClock;
  repaired.at_us = at_us_;
  repaired.actor = command.actor;
  repaired.reason = command.reason;
  const std::string detail = CommandDetail(repaired);
  state_.commands.emplace(key, std::move(repaired));
  out_.commands.push_back(key);
  Post(EntryKind::kClockRepair, Account::kControl, Account::kControl, 0, UtcMonth(now_us_),
       command.command_id,
       "moved back " + std::to_string(reply.moved_back_us) + " us, " + command.actor + ": " +
           command.reason,
       detail);
  Audit(command, "clock.repair", command.workspace,
        std::to_string(reply.moved_back_us) + " us: " + command.reason, command.command_id);
  return reply;
}

}  // namespace tollgate::billing
