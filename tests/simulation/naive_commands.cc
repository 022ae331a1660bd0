// The naive ledger's commands: credit, caps, corrections. Like naive_ledger.h, written from
// docs/design/ledger.md alone.
#include "tests/simulation/naive_ledger.h"

namespace tollgate::simulation {

using Kind = billing::CommandKind;

Reply NaiveLedger::Execute(const billing::OpenWallet& /*op*/) { return Yes(); }

Reply NaiveLedger::Execute(const billing::AddCredit& op) {
  if (op.command_id.empty() || op.amount_nano_usd <= 0) return No(Deny::kInvalid);
  const auto [stored, is_new] = commands_.try_emplace(op.workspace + "/" + op.command_id, op);
  if (is_new) {
    Money& money = money_[op.workspace];
    (op.granted ? money.granted : money.paid) += op.amount_nano_usd;
    PayDebt(op.workspace);
    return Yes();
  }
  const auto* earlier = std::get_if<billing::AddCredit>(&stored->second);
  const bool same =
      earlier && earlier->amount_nano_usd == op.amount_nano_usd && earlier->granted == op.granted;
  return same ? Yes() : No(Deny::kIdReuse);
}

Reply NaiveLedger::Execute(const billing::SetCap& op) {
  if (op.command_id.empty() || op.cap_nano_usd.value_or(0) < 0) return No(Deny::kInvalid);
  const auto [stored, is_new] = commands_.try_emplace(op.workspace + "/" + op.command_id, op);
  if (is_new) {
    money_[op.workspace].cap = op.cap_nano_usd;
    return Yes();
  }
  const auto* earlier = std::get_if<billing::SetCap>(&stored->second);
  return earlier && earlier->cap_nano_usd == op.cap_nano_usd ? Yes() : No(Deny::kIdReuse);
}

// Dates of entries do not affect the naive ledger.
Reply NaiveLedger::Execute(const billing::RepairClock&) { return Yes(); }

// Corrections: docs/design/ledger.md 8.

void NaiveLedger::PayDebt(const std::string& workspace) {
  Money& money = money_[workspace];
  const int64_t pay = std::min({money.owed, money.paid, Available(workspace)});
  if (pay <= 0) return;
  money.owed -= pay;
  money.paid -= pay;
  EndDispute(money);
}

void NaiveLedger::EndDispute(Money& money) {
  if (money.owed == 0 && money.frozen == billing::Freeze::kDispute) {
    money.frozen = billing::Freeze::kNone;
  }
}

Deny NaiveLedger::Post(const billing::Correct& op) {
  Money& money = money_[op.workspace];
  int64_t& credit = op.granted ? money.granted : money.paid;
  const int64_t amount = op.amount_nano_usd;
  const int64_t free_paid = std::min(money.paid, Available(op.workspace));
  switch (op.kind) {
    case Kind::kRefund:
      if (amount > free_paid) return Deny::kNoCredit;
      money.paid -= amount;
      break;
    case Kind::kRefundFailed:
    case Kind::kCreditAdjustment:
      credit += amount;
      PayDebt(op.workspace);
      break;
    case Kind::kDebitAdjustment:
      if (amount > std::min(credit, Available(op.workspace))) return Deny::kNoCredit;
      credit -= amount;
      break;
    case Kind::kChargeback:
      money.paid -= std::min(amount, free_paid);
      money.owed += amount - std::min(amount, free_paid);
      if (money.owed > 0 && money.frozen == billing::Freeze::kNone) {
        money.frozen = billing::Freeze::kDispute;
      }
      break;
    case Kind::kChargebackWon: {
      const int64_t forgiven = std::min(amount, money.owed);
      money.owed -= forgiven;
      money.paid += amount - forgiven;
      EndDispute(money);
      break;
    }
    case Kind::kWriteOff:
      if (amount > money.owed) return Deny::kInvalid;
      money.owed -= amount;
      EndDispute(money);
      break;
    case Kind::kFreeze:
      money.frozen = op.freeze;
      break;
    default:
      money.frozen = billing::Freeze::kNone;
  }
  return Deny::kNone;
}

Reply NaiveLedger::WithState(billing::CommandState state) {
  Reply reply = Yes();
  reply.command_state = state;
  return reply;
}

Reply NaiveLedger::Execute(const billing::Correct& op) {
  const bool moves = op.kind != Kind::kFreeze && op.kind != Kind::kUnfreeze;
  if (op.command_id.empty() || op.actor.empty() || op.reason.empty() ||
      (moves ? op.amount_nano_usd <= 0 : op.amount_nano_usd != 0)) {
    return No(Deny::kInvalid);
  }
  if (!money_.contains(op.workspace)) return No(Deny::kUnknownWorkspace);
  const std::string key = op.workspace + "/" + op.command_id;
  if (const auto stored = commands_.find(key); stored != commands_.end()) {
    const auto* earlier = std::get_if<billing::Correct>(&stored->second);
    const bool same = earlier && earlier->kind == op.kind &&
                      earlier->amount_nano_usd == op.amount_nano_usd &&
                      earlier->granted == op.granted && earlier->freeze == op.freeze;
    return same ? WithState(decisions_[key].state) : No(Deny::kIdReuse);
  }
  const bool two_people = moves && op.kind != Kind::kChargeback &&
                          op.kind != Kind::kChargebackWon && op.kind != Kind::kRefundFailed &&
                          op.amount_nano_usd > kOnePersonNanoUsd;
  if (two_people) {
    decisions_[key].state = billing::CommandState::kPending;
  } else if (const Deny refused = Post(op); refused != Deny::kNone) {
    return No(refused);
  }
  commands_.emplace(key, op);
  return WithState(decisions_[key].state);
}

Reply NaiveLedger::Execute(const billing::Decide& op) {
  if (op.actor.empty()) return No(Deny::kInvalid);
  if (!money_.contains(op.workspace)) return No(Deny::kUnknownWorkspace);
  const std::string key = op.workspace + "/" + op.command_id;
  const auto stored = commands_.find(key);
  if (stored == commands_.end()) return No(Deny::kInvalid);
  Decision& decision = decisions_[key];
  const auto wanted =
      op.approve ? billing::CommandState::kPosted : billing::CommandState::kRejected;
  if (decision.state != billing::CommandState::kPending) {
    return decision.state == wanted && decision.by == op.actor ? WithState(wanted)
                                                               : No(Deny::kIdReuse);
  }
  const auto& correct = std::get<billing::Correct>(stored->second);
  if (op.approve && op.actor == correct.actor) return No(Deny::kSamePerson);
  if (op.approve) {
    if (const Deny refused = Post(correct); refused != Deny::kNone) return No(refused);
  }
  decision = {wanted, op.actor};
  return WithState(wanted);
}

}  // namespace tollgate::simulation
