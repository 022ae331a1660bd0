// Plain values of the ledger. No I/O, no protos. Amounts are integer nano-USD, times Unix
// microseconds of the ledger's own clock. spec: reliability.md section 1, decisions.md "Money".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/base/id.h"
#include "common/money/money.h"

namespace tollgate::billing {

// Cumulative token counters of one request.
struct Usage {
  int64_t prompt = 0;  // the whole prompt, cached part included
  int64_t cached = 0;
  int64_t cache_write = 0;
  int64_t completion = 0;  // everything generated, reasoning included
  int64_t reasoning = 0;
  friend bool operator==(const Usage&, const Usage&) = default;
};

// Why an operation was refused. The numbers are those of the proto and of the database.
enum class Deny : uint8_t {
  kNone = 0,
  kNoCredit = 1,
  kCap = 2,
  kHeld = 3,
  kFrozen = 4,
  kIdReuse = 5,
  kClosed = 6,
  kInvalid = 7,
};

// How a generation ended. The numbers are those of the proto and of the database.
enum class Outcome : uint8_t {
  kNone = 0,  // not ended by a settle
  kCompleted = 1,
  kFailedBeforeOutput = 2,
  kFailedMidStream = 3,
  kClientGone = 4,
  kRecovered = 5,
};

enum class HoldState : uint8_t {
  kOpen = 1,
  kSettled = 2,
  kVoided = 3,
  kExpiredCharged = 4,
  kExpiredVoid = 5,
  kCorrected = 6,  // expired, then settled late, once
};

enum class OpKind : uint8_t {
  kAuthorize,
  kExtend,
  kHeartbeat,
  kSettle,
  kVoid,
  kExpire,
  kAddCredit,
  kSetCap,
};

// One operation. Only the fields of its kind count.
struct Op {
  OpKind kind = OpKind::kAuthorize;
  Id id;  // of the request; empty for the last two kinds
  std::string workspace;
  // kAuthorize
  std::string key_id;
  std::string model;
  Rates rates;
  int64_t price_version = 0;
  int64_t prompt_bound = 0;
  int64_t output_bound = 0;
  // kExtend, kHeartbeat, kSettle
  int64_t sequence = 0;
  int64_t authorized_total = 0;
  Usage usage;
  Outcome outcome = Outcome::kNone;
  bool cut_by_credit = false;
  bool estimated = false;
  std::string engine;
  // kAddCredit, kSetCap
  std::string command;  // makes the operation safe to repeat, within its workspace
  int64_t amount = 0;
  bool granted = false;
  std::optional<int64_t> cap;
  std::string actor;
  // kVoid, kAddCredit: why
  std::string reason;
};

struct Wallet {
  std::string workspace;
  int64_t paid = 0;  // posted, before what is held
  int64_t granted = 0;
  int64_t held = 0;
  int64_t open_holds = 0;
  std::optional<int64_t> cap;  // a month
  bool frozen = false;
  // End of this workspace's hash chain (docs/adr/0003).
  int64_t sequence = 0;
  std::string head = std::string(32, '\0');
  int64_t clock_us = 0;  // time of the newest entry: the books never run backwards

  int64_t posted() const { return paid + granted; }
  int64_t available() const { return posted() - held; }
};

// What one workspace spent in one UTC month, and holds of that month.
struct Month {
  std::string workspace;
  int32_t month = 0;  // YYYYMM
  int64_t spent = 0;
  int64_t held = 0;
};
// The key of a month's row.
std::string MonthKey(const std::string& workspace, int32_t month);

struct Hold {
  Id id;
  std::string workspace;
  HoldState state = HoldState::kOpen;
  // The body of the authorize. A tombstone (voided before it was ever opened) has month 0 and none.
  std::string key_id;
  std::string model;
  Rates rates;
  int64_t price_version = 0;
  int64_t prompt_bound = 0;
  int64_t output_bound = 0;
  int32_t month = 0;
  std::optional<int64_t> cap;  // in force at admission
  int64_t first_authorized = 0;
  int64_t authorized = 0;
  int64_t created_us = 0;
  int64_t expires_us = 0;
  // Progress.
  int64_t sequence = 0;
  Usage usage;
  // The end.
  Outcome outcome = Outcome::kNone;
  bool cut_by_credit = false;
  bool estimated = false;
  std::string engine;
  int64_t charged = 0;
  int64_t charged_granted = 0;  // the part of it that burned granted credit
  int64_t overrun = 0;
  int64_t closed_us = 0;

  bool tombstone() const { return month == 0; }
  // What the price is computed from: nothing when the request was given back.
  Usage BillableUsage() const;
  Int128 CostPico() const;
};

// Accounts of one workspace. free and held are a pair of control accounts: their sum is always
// zero, and held is the part of the posted credit that running requests have reserved.
enum class Account : uint8_t {
  kControl = 0,  // for entries that move no money
  kFunding = 1,
  kPromo = 2,
  kPaid = 3,
  kGranted = 4,
  kFree = 5,
  kHeld = 6,
  kRevenue = 7,
  kOverrun = 8,
};
std::string_view AccountName(Account account);

enum class EntryKind : uint8_t {
  kTopup = 1,
  kGrant = 2,
  kHold = 3,
  kExtend = 4,
  // The terminal ones: exactly one per hold, of the whole authorized amount, from held to free.
  kSettle = 5,
  kVoid = 6,
  kExpireCharge = 7,
  kExpireVoid = 8,
  // Follow their terminal entry.
  kCharge = 9,
  kOverrun = 10,
  kLateCorrection = 11,
  kCapChange = 12,
};
std::string_view EntryKindName(EntryKind kind);
inline bool IsTerminal(EntryKind kind) {
  return kind >= EntryKind::kSettle && kind <= EntryKind::kExpireVoid;
}

// Moves amount from the debit account to the credit account. Never changed once written.
struct Entry {
  std::string workspace;
  int64_t sequence = 0;  // gapless within the workspace, from 1
  EntryKind kind = EntryKind::kCapChange;
  std::string request;  // 16 bytes of the request id, or the command
  Account debit = Account::kControl;
  Account credit = Account::kControl;
  int64_t amount = 0;
  int32_t month = 0;
  int64_t at_us = 0;
  std::string memo;
  std::string hash;  // SHA-256 over the previous hash and everything above
};

// A repeatable command of an owner or operator, remembered.
struct Command {
  std::string workspace;
  std::string command;
  OpKind kind = OpKind::kAddCredit;
  int64_t amount = 0;
  bool granted = false;
  std::optional<int64_t> cap;
  int64_t at_us = 0;
};
std::string CommandKey(const std::string& workspace, const std::string& command);

struct Balance {
  std::string workspace;
  int64_t paid = 0;
  int64_t granted = 0;
  int64_t held = 0;
  std::optional<int64_t> cap;
  int32_t month = 0;
  int64_t month_spent = 0;
  int64_t month_held = 0;
  int64_t open_holds = 0;
  friend bool operator==(const Balance&, const Balance&) = default;
};

struct Reply {
  bool ok = false;
  Deny denied_by = Deny::kNone;
  int64_t retry_after_ms = 0;
  int64_t authorized = 0;
  int64_t slice = 0;
  int64_t charged = 0;
  Balance balance;  // kAddCredit and kSetCap only
  friend bool operator==(const Reply&, const Reply&) = default;
};

// The rows that a batch touches; a row that is not here does not exist.
struct State {
  std::unordered_map<std::string, Wallet> wallets;  // by workspace
  std::unordered_map<std::string, Month> months;    // by MonthKey
  std::unordered_map<Id, Hold, IdHash> holds;
  std::unordered_map<std::string, Command> commands;  // by CommandKey
};

}  // namespace tollgate::billing
