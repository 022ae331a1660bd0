#include "services/billing/domain/types.h"

namespace tollgate::billing {

std::string MonthKey(const std::string& workspace, int32_t month) {
  return workspace + ':' + std::to_string(month);
}

std::string CommandKey(std::string_view workspace, std::string_view command_id) {
  // Unambiguous: the name of a workspace contains no colon.
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
  }
  return "unknown";
}

}  // namespace tollgate::billing
