#include "services/billing/verify/verify_rules.h"

namespace tollgate::billing {
namespace {

bool IsPostedAccount(Account account) {
  return account == Account::kPaid || account == Account::kGranted;
}

}  // namespace

bool IsKnownKind(EntryKind kind) { return EntryKindName(kind) != "unknown"; }

bool IsRequestKind(EntryKind kind) {
  return kind >= EntryKind::kHold && kind <= EntryKind::kLateCorrection;
}

bool IsLeaseKind(EntryKind kind) {
  return kind == EntryKind::kLeaseGrant || kind == EntryKind::kLeaseReturn;
}

bool IsNote(const Entry& entry) {
  // Whatever makes credit available may pay the receivable and end the dispute.
  return IsLeaseKind(entry.kind) || entry.kind == EntryKind::kDeadLetterResolved ||
         entry.kind == EntryKind::kReceivablePaid ||
         (entry.kind == EntryKind::kUnfreeze && entry.detail.empty());
}

bool MayMove(EntryKind kind, Account debit, Account credit) {
  const auto is = [&](Account from, Account to) { return debit == from && credit == to; };
  switch (kind) {
    case EntryKind::kTopup:
      return is(Account::kFunding, Account::kPaid);
    case EntryKind::kGrant:
      return is(Account::kPromo, Account::kGranted);
    case EntryKind::kHold:
    case EntryKind::kExtend:
    case EntryKind::kLeaseGrant:
      return is(Account::kFree, Account::kHeld);
    case EntryKind::kSettle:
    case EntryKind::kVoid:
    case EntryKind::kExpireCharge:
    case EntryKind::kExpireVoid:
    case EntryKind::kLeaseReturn:
      return is(Account::kHeld, Account::kFree);
    case EntryKind::kCharge:
      return IsPostedAccount(debit) && credit == Account::kRevenue;
    case EntryKind::kOverrun:
      return is(Account::kOverrun, Account::kRevenue) || is(Account::kRevenue, Account::kOverrun);
    case EntryKind::kLateCorrection:
      return is(Account::kControl, Account::kControl) ||
             (IsPostedAccount(debit) && credit == Account::kRevenue) ||
             (debit == Account::kRevenue && IsPostedAccount(credit));
    case EntryKind::kRefund:
      return is(Account::kPaid, Account::kFunding);
    case EntryKind::kRefundFailed:
      return is(Account::kFunding, Account::kPaid);
    case EntryKind::kCreditAdjustment:
      return debit == Account::kAdjustment && IsPostedAccount(credit);
    case EntryKind::kDebitAdjustment:
      return IsPostedAccount(debit) && credit == Account::kAdjustment;
    case EntryKind::kChargeback:
      return is(Account::kPaid, Account::kChargeback) ||
             is(Account::kReceivable, Account::kChargeback);
    case EntryKind::kChargebackWon:
      return is(Account::kChargeback, Account::kReceivable) ||
             is(Account::kChargeback, Account::kPaid);
    case EntryKind::kWriteOff:
      return is(Account::kWriteOff, Account::kReceivable);
    case EntryKind::kReceivablePaid:
      return is(Account::kPaid, Account::kReceivable);
    default:
      return is(Account::kControl, Account::kControl);
  }
}

bool NeedsDetail(const Entry& entry) {
  switch (entry.kind) {
    case EntryKind::kExtend:
    case EntryKind::kLeaseGrant:
    case EntryKind::kLeaseReturn:
    case EntryKind::kCharge:
    case EntryKind::kOverrun:
    case EntryKind::kReceivablePaid:
    case EntryKind::kUnfreeze:  // by the last payment of a dispute
    case EntryKind::kDeadLetterResolved:
      return false;
    case EntryKind::kLateCorrection:
      return entry.debit == Account::kControl;
    default:
      return true;
  }
}

int CommandKindOf(EntryKind kind) {
  switch (kind) {
    case EntryKind::kTopup:
    case EntryKind::kGrant:
      return static_cast<int>(CommandKind::kAddCredit);
    case EntryKind::kCapChange:
      return static_cast<int>(CommandKind::kSetCap);
    case EntryKind::kClockRepair:
      return static_cast<int>(CommandKind::kRepairClock);
    case EntryKind::kRefund:
    case EntryKind::kCreditAdjustment:
    case EntryKind::kDebitAdjustment:
    case EntryKind::kChargeback:
    case EntryKind::kChargebackWon:
    case EntryKind::kWriteOff:
    case EntryKind::kRefundFailed:
      return static_cast<int>(kind);
    default:
      return 0;
  }
}

}  // namespace tollgate::billing
