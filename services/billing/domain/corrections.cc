// Corrections of the ledger by an operator or a payment provider: refund, adjustment, freeze,
// chargeback, write-off. Each one posts new entries; large ones wait for a second person
// (docs/design/ledger.md 8).
#include <algorithm>

#include "common/base/clock.h"
#include "services/billing/domain/batch.h"
#include "services/billing/domain/chain.h"

namespace tollgate::billing {
namespace {

// 10^9 USD, like the limit of credit.
constexpr int64_t kMaxCorrectionNanoUsd = 1'000'000'000 * kNanoPerUsd;

bool MovesMoney(CommandKind kind) {
  return kind != CommandKind::kFreeze && kind != CommandKind::kUnfreeze;
}

bool IsCorrection(CommandKind kind) {
  return (kind >= CommandKind::kRefund && kind <= CommandKind::kWriteOff) ||
         kind == CommandKind::kRefundFailed;
}

// The payment provider decides disputes and failed refunds, so a second person cannot.
bool MayNeedSecondPerson(CommandKind kind) {
  return MovesMoney(kind) && kind != CommandKind::kChargeback &&
         kind != CommandKind::kChargebackWon && kind != CommandKind::kRefundFailed;
}

bool IsValid(const Correct& command) {
  const bool amount_fits =
      MovesMoney(command.kind)
          ? command.amount_nano_usd > 0 && command.amount_nano_usd <= kMaxCorrectionNanoUsd
          : command.amount_nano_usd == 0;
  return IsCorrection(command.kind) && amount_fits && !command.command_id.empty() &&
         command.command_id.size() <= 64 && !command.actor.empty() && command.actor.size() <= 128 &&
         !command.reason.empty() && command.reason.size() <= 512 && command.reference.size() <= 128;
}

Command MakeCommand(const Correct& correct, int64_t at_us) {
  Command command;
  command.workspace = correct.workspace;
  command.command_id = correct.command_id;
  command.kind = correct.kind;
  command.amount_nano_usd = correct.amount_nano_usd;
  command.granted = correct.granted;
  command.at_us = at_us;
  command.actor = correct.actor;
  command.reason = correct.reason;
  command.reference = correct.reference;
  if (correct.kind == CommandKind::kFreeze) {
    // The reason of a freeze is stored as amount: a freeze moves no money.
    command.amount_nano_usd = static_cast<int64_t>(correct.freeze);
  }
  return command;
}

bool SameBody(const Command& stored, const Command& command) {
  return stored.kind == command.kind && stored.amount_nano_usd == command.amount_nano_usd &&
         stored.granted == command.granted && stored.reference == command.reference &&
         (MovesMoney(stored.kind) || stored.reason == command.reason);
}

std::string MemoOf(const Command& command) {
  std::string memo = command.actor + ": " + command.reason;
  if (!command.decided_by.empty()) memo += " (approved by " + command.decided_by + ")";
  return memo;
}

// Name of the action in the audit log.
std::string ActionOf(const Command& command) {
  if (command.kind == CommandKind::kFreeze) return "workspace.freeze";
  if (command.kind == CommandKind::kUnfreeze) return "workspace.unfreeze";
  return "adjustment.create";
}

std::string DetailOf(const Command& command) {
  if (!MovesMoney(command.kind)) return command.reason;
  std::string text = std::string(CommandKindName(command.kind)) + " of " +
                     NanoToDecimalUsd(command.amount_nano_usd) + " USD";
  if (command.state == CommandState::kPending) text += ", waits for a second person";
  return text + ": " + command.reason;
}

}  // namespace

Reply Batch::Execute(const Correct& correct) {
  if (!IsValid(correct)) return Refuse(Deny::kInvalid);
  if (wallet_ == nullptr) return Refuse(Deny::kUnknownWorkspace);
  const std::string key = CommandKey(correct.workspace, correct.command_id);
  Command command = MakeCommand(correct, at_us_);
  const auto stored = state_.commands.find(key);
  if (stored != state_.commands.end()) {
    if (!SameBody(stored->second, command)) return Refuse(Deny::kIdReuse);
    command = stored->second;
  } else if (MayNeedSecondPerson(command.kind) &&
             (correct.second_person ||
              command.amount_nano_usd > policy_.second_person_above_nano_usd)) {
    command.state = CommandState::kPending;
    PostNote(EntryKind::kCorrectionRequested, command, MemoOf(command));
    state_.commands.emplace(key, command);
    out_.commands.push_back(key);
    Audit(correct, ActionOf(command), command.command_id, DetailOf(command), command.command_id);
  } else {
    if (const Deny refused = PostCorrection(command); refused != Deny::kNone) {
      return Refuse(refused);
    }
    state_.commands.emplace(key, command);
    out_.commands.push_back(key);
    Audit(correct, ActionOf(command), command.command_id, DetailOf(command), command.command_id);
  }
  Reply reply;
  reply.ok = true;
  reply.command_state = command.state;
  reply.balance = CurrentBalance();
  return reply;
}

Reply Batch::Execute(const Decide& decide) {
  if (decide.actor.empty() || decide.actor.size() > 128 || decide.reason.size() > 512) {
    return Refuse(Deny::kInvalid);
  }
  if (wallet_ == nullptr) return Refuse(Deny::kUnknownWorkspace);
  const std::string key = CommandKey(decide.workspace, decide.command_id);
  const auto stored = state_.commands.find(key);
  if (stored == state_.commands.end()) return Refuse(Deny::kInvalid);
  Command& command = stored->second;
  const CommandState wanted = decide.approve ? CommandState::kPosted : CommandState::kRejected;
  if (command.state == CommandState::kPending) {
    if (decide.approve && decide.actor == command.actor) return Refuse(Deny::kSamePerson);
    Command decided = command;
    decided.decided_by = decide.actor;
    decided.decided_us = at_us_;
    decided.state = wanted;
    if (decide.approve) {
      if (const Deny refused = PostCorrection(decided); refused != Deny::kNone) {
        return Refuse(refused);
      }
    } else {
      PostNote(EntryKind::kCorrectionRejected, decided, decide.actor + ": " + decide.reason);
    }
    command = decided;
    out_.decided_commands.push_back(key);
    Audit(decide, decide.approve ? "adjustment.approve" : "adjustment.reject", command.command_id,
          decide.reason, decide.call_id);
  } else if (command.state != wanted || command.decided_by != decide.actor) {
    // The correction was decided differently or by another person before, or never had to wait.
    return Refuse(Deny::kIdReuse);
  }
  Reply reply;
  reply.ok = true;
  reply.command_state = command.state;
  reply.balance = CurrentBalance();
  return reply;
}

void Batch::PostNote(EntryKind kind, const Command& command, const std::string& memo) {
  Post(kind, Account::kControl, Account::kControl, 0, UtcMonth(now_us_), command.command_id, memo,
       CommandDetail(command));
}

Deny Batch::PostCorrection(const Command& command) {
  const int64_t amount = command.amount_nano_usd;
  const int32_t month = UtcMonth(now_us_);
  const std::string memo = MemoOf(command);
  const auto post = [&](EntryKind kind, Account debit, Account credit, int64_t moved) {
    if (moved > 0) {
      Post(kind, debit, credit, moved, month, command.command_id, memo, CommandDetail(command));
    }
  };
  const Account credit = command.granted ? Account::kGranted : Account::kPaid;
  // Amount of one of the two kinds of credit that running requests do not hold.
  const auto available = [this](Account account) {
    const int64_t posted =
        account == Account::kGranted ? wallet_->granted_nano_usd : wallet_->paid_nano_usd;
    return std::min(posted, wallet_->available_nano_usd());
  };
  switch (command.kind) {
    case CommandKind::kRefund:
      if (amount > available(Account::kPaid)) return Deny::kNoCredit;
      post(EntryKind::kRefund, Account::kPaid, Account::kFunding, amount);
      return Deny::kNone;
    case CommandKind::kRefundFailed:
      if (wallet_->posted_nano_usd() > kMaxCorrectionNanoUsd - amount) return Deny::kInvalid;
      post(EntryKind::kRefundFailed, Account::kFunding, Account::kPaid, amount);
      PayReceivable(command.command_id);
      return Deny::kNone;
    case CommandKind::kCreditAdjustment:
      if (wallet_->posted_nano_usd() > kMaxCorrectionNanoUsd - amount) return Deny::kInvalid;
      post(EntryKind::kCreditAdjustment, Account::kAdjustment, credit, amount);
      PayReceivable(command.command_id);
      return Deny::kNone;
    case CommandKind::kDebitAdjustment:
      if (amount > available(credit)) return Deny::kNoCredit;
      post(EntryKind::kDebitAdjustment, credit, Account::kAdjustment, amount);
      return Deny::kNone;
    case CommandKind::kChargeback: {
      const int64_t from_wallet = std::min(amount, available(Account::kPaid));
      post(EntryKind::kChargeback, Account::kPaid, Account::kChargeback, from_wallet);
      post(EntryKind::kChargeback, Account::kReceivable, Account::kChargeback,
           amount - from_wallet);
      if (wallet_->receivable_nano_usd > 0 && wallet_->frozen == Freeze::kNone) {
        wallet_->frozen = Freeze::kDispute;
        PostNote(EntryKind::kFreeze, command, "reason=dispute " + memo);
      }
      return Deny::kNone;
    }
    case CommandKind::kChargebackWon: {
      const int64_t owed = std::min(amount, wallet_->receivable_nano_usd);
      post(EntryKind::kChargebackWon, Account::kChargeback, Account::kReceivable, owed);
      post(EntryKind::kChargebackWon, Account::kChargeback, Account::kPaid, amount - owed);
      EndDispute(command.command_id);
      return Deny::kNone;
    }
    case CommandKind::kWriteOff:
      if (amount > wallet_->receivable_nano_usd) return Deny::kInvalid;
      post(EntryKind::kWriteOff, Account::kWriteOff, Account::kReceivable, amount);
      EndDispute(command.command_id);
      return Deny::kNone;
    case CommandKind::kFreeze:
      wallet_->frozen = static_cast<Freeze>(amount);
      PostNote(EntryKind::kFreeze, command,
               "reason=" + std::string(FreezeName(wallet_->frozen)) + " " + memo);
      return Deny::kNone;
    case CommandKind::kUnfreeze:
      wallet_->frozen = Freeze::kNone;
      PostNote(EntryKind::kUnfreeze, command, memo);
      // Credit may have become available under an older version, which did not pay debts from it.
      PayReceivable(command.command_id);
      return Deny::kNone;
    default:
      return Deny::kInvalid;
  }
}

void Batch::PayReceivable(const std::string& reference) {
  const int64_t amount = std::min(
      {wallet_->receivable_nano_usd, wallet_->paid_nano_usd, wallet_->available_nano_usd()});
  if (amount <= 0) return;
  Post(EntryKind::kReceivablePaid, Account::kPaid, Account::kReceivable, amount, UtcMonth(now_us_),
       reference);
  EndDispute(reference);
}

void Batch::EndDispute(const std::string& reference) {
  if (wallet_->frozen != Freeze::kDispute || wallet_->receivable_nano_usd > 0) return;
  wallet_->frozen = Freeze::kNone;
  Post(EntryKind::kUnfreeze, Account::kControl, Account::kControl, 0, UtcMonth(now_us_), reference,
       "nothing is owed any more");
}

}  // namespace tollgate::billing
