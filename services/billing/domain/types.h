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
#include "services/billing/domain/candidate.h"
#include "services/billing/domain/entry.h"
#include "services/billing/domain/lease.h"

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
  kQuota = 8,
  kFrozenByCheck = 9,
  kUnknownWorkspace = 10,  // commands only
  kSamePerson = 11,        // who asked for a correction may not approve it
  kUnknownDeadLetter = 12,
  kUnavailable = 13,  // nothing is decided: ask again under the same id
  kNoLease = 14,      // of TakeLease: the workspace has no leases at the moment
  // The Idempotency-Key was used within a day by another request (decision 59):
  kIdempotencyBody = 20,     // with another body
  kIdempotencyRunning = 21,  // that is still running
  kIdempotencyDone = 22,     // that has been answered
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

// completed, failed_before_output, …; empty for kNone.
std::string_view OutcomeName(Outcome outcome);
std::optional<Outcome> OutcomeNamed(std::string_view name);

enum class HoldState : uint8_t {
  kOpen = 1,
  kSettled = 2,
  kVoided = 3,
  kExpiredCharged = 4,
  kExpiredVoid = 5,
  kCorrected = 6,  // expired, then settled late, once; or its charge undone by a refusal
};

std::string_view HoldStateName(HoldState state);

// Why a workspace takes no new requests. The numbers are those of the database.
enum class Freeze : uint8_t {
  kNone = 0,
  kOperator = 1,
  kDispute = 2,
  kFailedCheck = 3,  // its books disagree with themselves (decision 64)
};
std::string_view FreezeName(Freeze freeze);

// Where a request came in. The numbers are those of the proto and of the database.
enum class Surface : uint8_t {
  kUnknown = 0,
  kChatCompletions = 1,
  kCompletions = 2,
  kEmbeddings = 3,
  kMessages = 4,
  kResponses = 5,
};

// chat_completions, completions, …; empty for kUnknown.
std::string_view SurfaceName(Surface surface);

struct Wallet {
  std::string workspace;
  int64_t paid_nano_usd = 0;     // posted: includes what is held
  int64_t granted_nano_usd = 0;  // the same, given by the operator
  int64_t held_nano_usd = 0;
  // What a chargeback took beyond the credit that was available. It is paid as soon as paid credit
  // is available: while it is above zero, all paid credit is held.
  int64_t receivable_nano_usd = 0;
  // Open holds, and leases that reserve something: versions without leases take a wallet that holds
  // something without any for broken.
  int64_t open_holds = 0;
  int64_t leased_nano_usd = 0;          // the part of held that leases reserve
  int64_t leases = 0;                   // that reserve something
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
// Names a month's row in a State.
std::string MonthKey(const std::string& workspace, int32_t month);

// The same for one key that has a quota. Kept from the first request on that came with a quota, or
// the first late correction that counts towards another month than its request.
struct KeyMonth {
  std::string workspace;
  std::string key_id;
  int32_t month = 0;  // YYYYMM
  int64_t spent_nano_usd = 0;
  int64_t held_nano_usd = 0;  // of holds that were opened with a quota
};
std::string KeyMonthKey(const std::string& workspace, const std::string& key_id, int32_t month);

// Money reserved for one request, and how it ended.
struct Hold {
  Id id;  // of the request
  std::string workspace;
  HoldState state = HoldState::kOpen;
  // The body of the authorize. A tombstone (voided before it was opened) has month 0 and no body.
  std::string key_id;
  // Of the model that the live try asks, or that has answered.
  std::string model;
  Rates rates;
  int64_t price_version = 0;
  int64_t prompt_bound = 0;
  int64_t output_bound = 0;
  // All models that may answer, the first one included, and which of them the fields above are of.
  // Empty and 0: there is only one.
  std::vector<Candidate> candidates;
  int32_t candidate = 0;
  int32_t month = 0;                          // of the admission
  std::optional<int64_t> cap_nano_usd;        // in force at admission
  std::optional<int64_t> key_quota_nano_usd;  // of the key per month, in force at admission
  // What receipts and lists show of the request; not part of the body that is compared.
  Surface surface = Surface::kUnknown;
  bool streamed = false;
  std::string client_request_id;       // the x-request-id that the caller saw
  std::string idempotency_key_digest;  // 32 bytes, or empty
  int32_t attempt = 0;                 // the live try; operations of earlier ones are refused
  int64_t first_authorized_nano_usd = 0;
  int64_t authorized_nano_usd = 0;
  int64_t created_us = 0;
  int64_t expires_us = 0;
  // From the newest extend or heartbeat of that try.
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
  int64_t first_token_us = 0;  // from the arrival at the router to the first output; 0: none

  bool tombstone() const { return month == 0; }
  // Closed without a charge, for good: nothing was generated, or the caller's answer was an error.
  bool free() const {
    return outcome == Outcome::kFailedBeforeOutput ||
           (state == HoldState::kVoided && outcome == Outcome::kNone);
  }
  // The usage that is priced: zero when the request was free.
  Usage BillableUsage() const;
  Int128 CostPicoUsd() const;
  // The model of the live try, with its price and bounds.
  Candidate Current() const;
  // Makes another candidate the current one. The index must be valid.
  void Ask(int32_t index);
};

// The numbers are those of the database.
enum class CommandKind : uint8_t {
  kAddCredit = 6,
  kSetCap = 7,
  kRepairClock = 14,
  // The entry of a correction has the same number.
  kRefund = 20,
  kCreditAdjustment = 21,
  kDebitAdjustment = 22,
  kFreeze = 23,
  kUnfreeze = 24,
  kChargeback = 25,
  kChargebackWon = 26,
  kWriteOff = 27,
  kRefundFailed = 31,
};
std::string_view CommandKindName(CommandKind kind);

// The numbers are those of the database.
enum class CommandState : uint8_t {
  kPosted = 1,
  kPending = 2,  // waits for a second person
  kRejected = 3,
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
  CommandState state = CommandState::kPosted;
  std::string actor;
  std::string reason;
  std::string reference;   // of the payment or dispute that a correction is about
  std::string decided_by;  // the second person
  int64_t decided_us = 0;
};
// Names a command's row in a State.
std::string CommandKey(std::string_view workspace, std::string_view command_id);

// The numbers are those of the database.
enum class DeadLetterState : uint8_t { kOpen = 1, kRetried = 2, kWrittenOff = 3 };

// A settle that was refused (dead_letter.h).
struct DeadLetter {
  Id id;               // of the request
  int32_t number = 0;  // per id, from 1; set when it is stored
  std::string workspace;
  int64_t at_us = 0;
  Deny reason = Deny::kNone;
  std::string operation;  // EncodeSettle
  DeadLetterState state = DeadLetterState::kOpen;
  // Set when it is resolved.
  int64_t resolved_us = 0;
  std::string actor;
  std::string note;
};
// The primary key of its row.
std::string DeadLetterKey(const Id& id, int32_t number);

struct Balance {
  std::string workspace;
  int64_t paid_nano_usd = 0;
  int64_t granted_nano_usd = 0;
  int64_t held_nano_usd = 0;
  int64_t receivable_nano_usd = 0;
  Freeze frozen = Freeze::kNone;
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
  int64_t moved_back_us = 0;                           // RepairClock only
  Balance balance;                                     // commands only
  CommandState command_state = CommandState::kPosted;  // commands only
  LeaseTerms lease;                                    // TakeLease only
  friend bool operator==(const Reply&, const Reply&) = default;
};

inline Reply Refuse(Deny reason) {
  Reply reply;
  reply.denied_by = reason;
  return reply;
}

// What a batch adds to the roll-ups of a key and model (decision 53). A correction may be negative.
struct UsageChange {
  std::string workspace;
  std::string key_id;
  std::string model;
  int64_t admitted_us = 0;
  int64_t requests = 0;       // closed requests that generated something
  int64_t free_requests = 0;  // closed requests that cost nothing, since nothing was generated
  Usage usage;
  int64_t charged_nano_usd = 0;
  int64_t overrun_nano_usd = 0;

  // Adds the figures; the key stays.
  UsageChange& operator+=(const UsageChange& other);
};

// The request that an Idempotency-Key stands for. How that request ended is in its hold.
struct IdempotencyKey {
  std::string workspace;
  std::string digest;  // 32 bytes
  Id request_id;
  std::string body_digest;  // 32 bytes
  int64_t created_us = 0;
};
// Names its row in a State.
std::string IdempotencyRowKey(const std::string& workspace, const std::string& digest);

// The rows that a batch touches; a row that is not here does not exist.
struct State {
  std::unordered_map<std::string, Wallet> wallets;       // by workspace
  std::unordered_map<std::string, Month> months;         // by MonthKey
  std::unordered_map<std::string, KeyMonth> key_months;  // by KeyMonthKey
  std::unordered_map<Id, Hold, IdHash> holds;
  std::unordered_map<std::string, Command> commands;                 // by CommandKey
  std::unordered_map<std::string, DeadLetter> dead_letters;          // by DeadLetterKey
  std::unordered_map<std::string, IdempotencyKey> idempotency_keys;  // by IdempotencyRowKey
  std::unordered_map<std::string, Lease> leases;                     // by LeaseKey
  // Workspaces whose wallet disagrees with their entries: nothing of them may be written.
  std::unordered_map<std::string, std::string> broken;  // why, by workspace
};

}  // namespace tollgate::billing
