// Entries of the ledger, and the accounts between which they move money.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tollgate::billing {

// Accounts of one workspace. free and held are control accounts: their sum is always zero, and held
// is the part of the posted credit that open holds and leases reserve.
enum class Account : uint8_t {
  kControl = 0,  // for entries without an amount
  kFunding = 1,
  kPromo = 2,
  kPaid = 3,
  kGranted = 4,
  kFree = 5,
  kHeld = 6,
  kRevenue = 7,
  kOverrun = 8,
  kReceivable = 9,
  kChargeback = 10,
  kWriteOff = 11,
  kAdjustment = 12,
};
std::string_view AccountName(Account account);

enum class EntryKind : uint8_t {
  kTopup = 1,
  kGrant = 2,
  kHold = 3,
  kExtend = 4,
  // Terminal entries: exactly one per hold. It moves the whole authorized amount from held to free.
  kSettle = 5,
  kVoid = 6,
  kExpireCharge = 7,
  kExpireVoid = 8,
  // Entries after the terminal entry of their hold.
  kCharge = 9,
  kOverrun = 10,
  kLateCorrection = 11,
  kCapChange = 12,
  // Sets the workspace's clock back. Only this entry may be older than the one before it.
  kClockRepair = 14,
  // Entries of a lease; they name the lessee. A grant moves its amount from free to held. A return
  // moves back what an admitted request takes out of the lease, and the unused rest.
  kLeaseGrant = 15,
  kLeaseReturn = 16,
  // Corrections (commands.cc, corrections.cc). Entries are never edited.
  kRefund = 20,
  kCreditAdjustment = 21,
  kDebitAdjustment = 22,
  kFreeze = 23,
  kUnfreeze = 24,
  kChargeback = 25,
  kChargebackWon = 26,
  kWriteOff = 27,
  kReceivablePaid = 28,
  kCorrectionRequested = 29,  // waits for a second person
  kCorrectionRejected = 30,
  kRefundFailed = 31,  // a refund that the provider could not pay out; gives the credit back
  kDeadLetterResolved = 60,
};
std::string_view EntryKindName(EntryKind kind);
inline bool IsTerminal(EntryKind kind) {
  return kind >= EntryKind::kSettle && kind <= EntryKind::kExpireVoid;
}
// Whether the entry names its request by its 16 bytes. All others name a command, a lessee, or a
// request in hexadecimal digits.
inline bool IsRequestEntry(EntryKind kind) {
  return (kind >= EntryKind::kHold && kind <= EntryKind::kLateCorrection) ||
         kind == EntryKind::kDeadLetterResolved;
}

// Moves the amount from the debit account to the credit account. Immutable once written.
struct Entry {
  std::string workspace;
  int64_t sequence = 0;  // gapless within the workspace, from 1
  EntryKind kind = EntryKind::kCapChange;
  std::string request;  // 16 bytes of the request id, or a text (IsRequestEntry)
  Account debit = Account::kControl;
  Account credit = Account::kControl;
  int64_t amount_nano_usd = 0;
  int32_t month = 0;
  int64_t at_us = 0;
  std::string memo;
  // SHA-256, 32 bytes, over the subject of the entry (chain.h): the body of the authorize for the
  // first entry of a hold, usage and outcome for its closing entries, the values of a command for
  // the entries of commands. Empty in entries of older versions and in entries that need none.
  std::string detail;
  std::string hash;  // SHA-256 over the previous hash and everything above
};

}  // namespace tollgate::billing
