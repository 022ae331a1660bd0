#include "services/billing/domain/types.h"

namespace tollgate::billing {

std::string MonthKey(const std::string& workspace, int32_t month) {
  return workspace + ':' + std::to_string(month);
}

std::string LeaseKey(const LeaseName& name) {
  // Unambiguous: neither workspace names nor months contain a colon.
  return name.workspace + ':' + std::to_string(name.month) + ':' + name.lessee;
}

std::string KeyMonthKey(const std::string& workspace, const std::string& key_id, int32_t month) {
  // Unambiguous: neither workspace names nor months contain a colon.
  return workspace + ':' + std::to_string(month) + ':' + key_id;
}

std::string IdempotencyRowKey(const std::string& workspace, const std::string& digest) {
  return workspace + '\0' + digest;
}

std::string CommandKey(std::string_view workspace, std::string_view command_id) {
  // Unambiguous: workspace names contain no colon.
  std::string key(workspace);
  key += ':';
  key += command_id;
  return key;
}

Usage Hold::BillableUsage() const {
  const bool free = state == HoldState::kVoided || state == HoldState::kExpiredVoid ||
                    outcome == Outcome::kFailedBeforeOutput;
  return free ? Usage() : usage;
}

Int128 Hold::CostPicoUsd() const {
  const Usage billable = BillableUsage();
  return tollgate::CostPicoUsd(rates, billable.prompt, billable.completion);
}

Candidate Hold::Current() const {
  return {model, rates, price_version, prompt_bound, output_bound};
}

void Hold::Ask(int32_t index) {
  if (candidates.empty()) return;
  candidate = index;
  const Candidate& asked = candidates[static_cast<size_t>(index)];
  model = asked.model;
  rates = asked.rates;
  price_version = asked.price_version;
  prompt_bound = asked.prompt_bound;
  output_bound = asked.output_bound;
}

UsageChange& UsageChange::operator+=(const UsageChange& other) {
  requests += other.requests;
  free_requests += other.free_requests;
  usage.prompt += other.usage.prompt;
  usage.cached += other.usage.cached;
  usage.cache_write += other.usage.cache_write;
  usage.completion += other.usage.completion;
  usage.reasoning += other.usage.reasoning;
  charged_nano_usd += other.charged_nano_usd;
  overrun_nano_usd += other.overrun_nano_usd;
  return *this;
}

std::string_view AccountName(Account account) {
  switch (account) {
    case Account::kControl:
      return "control";
    case Account::kFunding:
      return "funding";
    case Account::kPromo:
      return "promo";
    case Account::kPaid:
      return "paid";
    case Account::kGranted:
      return "granted";
    case Account::kFree:
      return "free";
    case Account::kHeld:
      return "held";
    case Account::kRevenue:
      return "revenue";
    case Account::kOverrun:
      return "operator_overrun";
    case Account::kReceivable:
      return "receivable";
    case Account::kChargeback:
      return "chargeback";
    case Account::kWriteOff:
      return "write_off";
    case Account::kAdjustment:
      return "adjustment";
  }
  return "unknown";
}

std::string_view EntryKindName(EntryKind kind) {
  switch (kind) {
    case EntryKind::kTopup:
      return "topup";
    case EntryKind::kGrant:
      return "grant";
    case EntryKind::kHold:
      return "hold";
    case EntryKind::kExtend:
      return "extend";
    case EntryKind::kSettle:
      return "settle";
    case EntryKind::kVoid:
      return "void";
    case EntryKind::kExpireCharge:
      return "expire_charge";
    case EntryKind::kExpireVoid:
      return "expire_void";
    case EntryKind::kCharge:
      return "charge";
    case EntryKind::kOverrun:
      return "overrun";
    case EntryKind::kLateCorrection:
      return "late_correction";
    case EntryKind::kCapChange:
      return "cap_change";
    case EntryKind::kClockRepair:
      return "clock_repair";
    case EntryKind::kLeaseGrant:
      return "lease_grant";
    case EntryKind::kLeaseReturn:
      return "lease_return";
    case EntryKind::kRefund:
      return "refund";
    case EntryKind::kCreditAdjustment:
      return "credit_adjustment";
    case EntryKind::kDebitAdjustment:
      return "debit_adjustment";
    case EntryKind::kFreeze:
      return "freeze";
    case EntryKind::kUnfreeze:
      return "unfreeze";
    case EntryKind::kChargeback:
      return "chargeback";
    case EntryKind::kChargebackWon:
      return "chargeback_won";
    case EntryKind::kWriteOff:
      return "write_off";
    case EntryKind::kReceivablePaid:
      return "receivable_paid";
    case EntryKind::kCorrectionRequested:
      return "correction_requested";
    case EntryKind::kCorrectionRejected:
      return "correction_rejected";
    case EntryKind::kRefundFailed:
      return "refund_failed";
    case EntryKind::kDeadLetterResolved:
      return "dead_letter_resolved";
  }
  return "unknown";
}

std::string_view CommandKindName(CommandKind kind) {
  switch (kind) {
    case CommandKind::kAddCredit:
      return "add_credit";
    case CommandKind::kSetCap:
      return "set_cap";
    default:
      return EntryKindName(static_cast<EntryKind>(kind));
  }
}

std::string DeadLetterKey(const Id& id, int32_t number) {
  return id.ToBytes() + std::to_string(number);
}

std::string_view FreezeName(Freeze freeze) {
  switch (freeze) {
    case Freeze::kNone:
      return "none";
    case Freeze::kOperator:
      return "operator";
    case Freeze::kDispute:
      return "dispute";
    case Freeze::kFailedCheck:
      return "failed_check";
  }
  return "unknown";
}

std::string_view OutcomeName(Outcome outcome) {
  switch (outcome) {
    case Outcome::kNone:
      return "";
    case Outcome::kCompleted:
      return "completed";
    case Outcome::kFailedBeforeOutput:
      return "failed_before_output";
    case Outcome::kFailedMidStream:
      return "failed_mid_stream";
    case Outcome::kClientGone:
      return "client_gone";
    case Outcome::kRecovered:
      return "recovered";
  }
  return "";
}

std::optional<Outcome> OutcomeNamed(std::string_view name) {
  for (int number = 1; number <= static_cast<int>(Outcome::kRecovered); ++number) {
    const auto outcome = static_cast<Outcome>(number);
    if (OutcomeName(outcome) == name) return outcome;
  }
  return std::nullopt;
}

std::string_view HoldStateName(HoldState state) {
  switch (state) {
    case HoldState::kOpen:
      return "open";
    case HoldState::kSettled:
      return "settled";
    case HoldState::kVoided:
      return "voided";
    case HoldState::kExpiredCharged:
      return "expired_charged";
    case HoldState::kExpiredVoid:
      return "expired_void";
    case HoldState::kCorrected:
      return "corrected";
  }
  return "unknown";
}

std::string_view SurfaceName(Surface surface) {
  switch (surface) {
    case Surface::kUnknown:
      return "";
    case Surface::kChatCompletions:
      return "chat_completions";
    case Surface::kCompletions:
      return "completions";
    case Surface::kEmbeddings:
      return "embeddings";
    case Surface::kMessages:
      return "messages";
    case Surface::kResponses:
      return "responses";
  }
  return "";
}

}  // namespace tollgate::billing
