// Plain values of the ledger: its rows and its replies. No I/O, no protos. Amounts are integer
// nano-USD, times Unix microseconds of the ledger's own clock.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
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
  // 8 is the key's quota.
  kFrozenByCheck = 9,
  kUnavailable = 12,  // nothing is decided: ask again under the same id
};

// How a generation ended. The numbers are those of the proto and of the database.
enum class Outcome : uint8_t {
  kNone = 0,  // not closed by a settle
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

// Why new requests of a workspace are refused. The numbers are those of the database.
enum class Freeze : uint8_t {
  kNone = 0,
  kOperator = 1,
  kDispute = 2,
  kFailedCheck = 3,  // its books contradict each other
};

struct Wallet {
  std::string workspace;
  int64_t paid_nano_usd = 0;     // posted: includes what is held
  int64_t granted_nano_usd = 0;  // the same, given by the operator
  int64_t held_nano_usd = 0;
  int64_t open_holds = 0;
  std::optional<int64_t> cap_nano_usd;  // per UTC month
  Freeze frozen = Freeze::kNone;
  // The newest entry of this workspace's hash chain (docs/adr/0003).
  int64_t sequence = 0;
  std::string head = std::string(32, '\0');
  // Time of the newest entry. Only a clock repair sets it back. It dates entries and decides
  // nothing: one clock that ran ahead must not change what is granted, capped or expired
  // afterwards.
  int64_t clock_us = 0;

  int64_t posted_nano_usd() const { return paid_nano_usd + granted_nano_usd; }
  int64_t available_nano_usd() const { return posted_nano_usd() - held_nano_usd; }
};

// What one workspace spent in one UTC month, and what holds of that month reserve.
struct Month {
  std::string workspace;
  int32_t month = 0;  // YYYYMM
  int64_t spent_nano_usd = 0;
  int64_t held_nano_usd = 0;
};
// The primary key of a month's row.
std::string MonthKey(const std::string& workspace, int32_t month);

// Money reserved for one request, and how it ended.
struct Hold {
  Id id;  // of the request
  std::string workspace;
  HoldState state = HoldState::kOpen;
  // The body of the authorize. A tombstone (voided before it was opened) has month 0 and no body.
  std::string key_id;
  std::string model;
  Rates rates;
  int64_t price_version = 0;
  int64_t prompt_bound = 0;
  int64_t output_bound = 0;
  int32_t month = 0;                    // of the admission
  std::optional<int64_t> cap_nano_usd;  // in force at admission
  int64_t first_authorized_nano_usd = 0;
  int64_t authorized_nano_usd = 0;
  int64_t created_us = 0;
  int64_t expires_us = 0;
  // From the newest extend or heartbeat.
  int64_t sequence = 0;
  Usage usage;
  // Set when the hold closes.
  Outcome outcome = Outcome::kNone;
  bool cut_by_credit = false;
  bool estimated = false;
  std::string engine;
  int64_t charged_nano_usd = 0;
  int64_t charged_granted_nano_usd = 0;  // the part of it taken from granted credit
  int64_t overrun_nano_usd = 0;
  int64_t closed_us = 0;

  bool tombstone() const { return month == 0; }
  // The usage that is priced: zero when the request was free.
  Usage BillableUsage() const;
  Int128 CostPicoUsd() const;
};

// Accounts of one workspace. free and held are a pair of control accounts: their sum is always
// zero, and held is the part of the posted credit that open holds reserve.
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
};
std::string_view AccountName(Account account);

enum class EntryKind : uint8_t {
  kTopup = 1,
  kGrant = 2,
  kHold = 3,
  kExtend = 4,
  // Terminal entries: exactly one per hold, of the whole authorized amount, from held to free.
  kSettle = 5,
  kVoid = 6,
  kExpireCharge = 7,
  kExpireVoid = 8,
  // Follow the terminal entry of their hold.
  kCharge = 9,
  kOverrun = 10,
  kLateCorrection = 11,
  kCapChange = 12,
  // Sets the workspace's clock back: the only entry that may be older than the one before it.
  kClockRepair = 14,
};
std::string_view EntryKindName(EntryKind kind);
inline bool IsTerminal(EntryKind kind) {
  return kind >= EntryKind::kSettle && kind <= EntryKind::kExpireVoid;
}

// Moves the amount from the debit account to the credit account. Immutable once written.
struct Entry {
  std::string workspace;
  int64_t sequence = 0;  // gapless within the workspace, from 1
  EntryKind kind = EntryKind::kCapChange;
  std::string request;  // 16 bytes of the request id, or the id of the command
  Account debit = Account::kControl;
  Account credit = Account::kControl;
  int64_t amount_nano_usd = 0;
  int32_t month = 0;
  int64_t at_us = 0;
  std::string memo;
  std::string hash;  // SHA-256 over the previous hash and everything above
};

// The numbers are those of the database.
enum class CommandKind : uint8_t {
  kAddCredit = 6,
  kSetCap = 7,
  kRepairClock = 14,
};

// A command of an owner or operator, stored so that its repetition changes nothing.
struct Command {
  std::string workspace;
  std::string command_id;
  CommandKind kind = CommandKind::kAddCredit;
  int64_t amount_nano_usd = 0;
  bool granted = false;
  std::optional<int64_t> cap_nano_usd;
  int64_t at_us = 0;
};
// The primary key of a command's row.
std::string CommandKey(std::string_view workspace, std::string_view command_id);

struct Balance {
  std::string workspace;
  int64_t paid_nano_usd = 0;
  int64_t granted_nano_usd = 0;
  int64_t held_nano_usd = 0;
  std::optional<int64_t> cap_nano_usd;
  int32_t month = 0;
  int64_t month_spent_nano_usd = 0;
  int64_t month_held_nano_usd = 0;
  int64_t open_holds = 0;
  friend bool operator==(const Balance&, const Balance&) = default;
};

struct Reply {
  bool ok = false;
  Deny denied_by = Deny::kNone;
  int64_t retry_after_ms = 0;
  int64_t authorized_nano_usd = 0;
  int64_t slice_nano_usd = 0;
  int64_t charged_nano_usd = 0;
  int64_t moved_back_us = 0;  // RepairClock only
  Balance balance;            // AddCredit and SetCap only
  friend bool operator==(const Reply&, const Reply&) = default;
};

inline Reply Refuse(Deny reason) {
  Reply reply;
  reply.denied_by = reason;
  return reply;
}

// The rows that a batch touches; a row that is not here does not exist.
struct State {
  std::unordered_map<std::string, Wallet> wallets;  // by workspace
  std::unordered_map<std::string, Month> months;    // by MonthKey
  std::unordered_map<Id, Hold, IdHash> holds;
  std::unordered_map<std::string, Command> commands;  // by CommandKey
};

}  // namespace tollgate::billing
