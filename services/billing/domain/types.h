// Plain values of the ledger: its rows and its replies. No I/O, no protos. Amounts are integer
// nano-USD, times are Unix microseconds of the ledger's clock.
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

// Why an operation was refused. The proto and the database use the same numbers.
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
  kSamePerson = 11,        // the requester of a correction may not approve it
  kUnknownDeadLetter = 12,
  kUnavailable = 13,  // nothing is decided: retry with the same id
  kNoLease = 14,      // TakeLease: leases are not available to the workspace now
  kClock = 15,        // the time of the id is too far from the ledger's
  // The Idempotency-Key was used by another request within a day (decision 59):
  kIdempotencyBody = 20,     // with another body
  kIdempotencyRunning = 21,  // that is still running
  kIdempotencyDone = 22,     // that has been answered
};

// How a generation ended. The proto and the database use the same numbers.
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

// Why a workspace takes no new requests. The database uses the same numbers.
enum class Freeze : uint8_t {
  kNone = 0,
  kOperator = 1,
  kDispute = 2,
  kFailedCheck = 3,  // its wallet disagrees with its entries (decision 64)
};
std::string_view FreezeName(Freeze freeze);

// Public API that received the request. The proto and the database use the same numbers.
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
  int64_t paid_nano_usd = 0;     // posted, including what is held
  int64_t granted_nano_usd = 0;  // posted, given by the operator
  int64_t held_nano_usd = 0;
  // Debt from chargebacks that took more than the available credit. Paid as soon as paid credit is
  // available, so while it is above zero all paid credit is held.
  int64_t receivable_nano_usd = 0;
  // Number of open holds and of leases that reserve something. Versions without leases treat a
  // wallet with a held amount but no open holds as broken.
  int64_t open_holds = 0;
  int64_t leased_nano_usd = 0;          // the part of held that leases reserve
  int64_t leases = 0;                   // number that reserve something
  std::optional<int64_t> cap_nano_usd;  // per UTC month
  Freeze frozen = Freeze::kNone;
  // Newest entry of this workspace's hash chain (docs/adr/0003).
  int64_t sequence = 0;
  std::string head = std::string(32, '\0');
  // Time of the newest entry. Only a clock repair sets it back. It dates entries and affects no
  // decision: a clock that ran ahead must not change what is granted, capped or expired afterwards.
  int64_t clock_us = 0;

  int64_t posted_nano_usd() const { return paid_nano_usd + granted_nano_usd; }
  int64_t available_nano_usd() const { return posted_nano_usd() - held_nano_usd; }
};

// Spend of one workspace in one UTC month, and the amount reserved by holds of that month.
struct Month {
  std::string workspace;
  int32_t month = 0;  // YYYYMM
  int64_t spent_nano_usd = 0;
  int64_t held_nano_usd = 0;
};
// Key of the row in a State.
std::string MonthKey(const std::string& workspace, int32_t month);

// Month of one key with a quota. Kept from the first request with a quota, or from the first late
// correction that counts towards another month than its request.
struct KeyMonth {
  std::string workspace;
  std::string key_id;
  int32_t month = 0;  // YYYYMM
  int64_t spent_nano_usd = 0;
  int64_t held_nano_usd = 0;  // by holds opened with a quota
};
std::string KeyMonthKey(const std::string& workspace, const std::string& key_id, int32_t month);

// Credit reserved for one request, and how the request ended.
struct Hold {
  Id id;  // request id
  std::string workspace;
  HoldState state = HoldState::kOpen;
  // Body of the authorize. A tombstone (voided before it was opened) has month 0 and no body.
  std::string key_id;
  // Model that the live attempt uses, or that has answered.
  std::string model;
  Rates rates;
  int64_t price_version = 0;
  int64_t prompt_bound = 0;
  int64_t output_bound = 0;
  // All models that may answer, including the first one, and the index of the one in the fields
  // above. Empty and 0 if there is only one.
  std::vector<Candidate> candidates;
  int32_t candidate = 0;
  int32_t month = 0;                          // month of the admission
  std::optional<int64_t> cap_nano_usd;        // cap at admission
  std::optional<int64_t> key_quota_nano_usd;  // monthly quota of the key at admission
  // Keys that share the quota: those that this key was rotated from or to.
  std::vector<std::string> quota_keys;
  // Shown in receipts and lists. Not part of the body that is compared.
  Surface surface = Surface::kUnknown;
  bool streamed = false;
  std::string client_request_id;       // the x-request-id that the caller saw
  std::string idempotency_key_digest;  // 32 bytes, or empty
  int32_t attempt = 0;                 // the live attempt; operations of earlier ones are refused
  int64_t first_authorized_nano_usd = 0;
  int64_t authorized_nano_usd = 0;
  int64_t created_us = 0;
  int64_t expires_us = 0;
  // From the newest extend or heartbeat of the live attempt.
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
  // Whether the hold was closed without a charge for good: no output, or the caller got an error.
  bool free() const {
    return outcome == Outcome::kFailedBeforeOutput ||
           (state == HoldState::kVoided && outcome == Outcome::kNone);
  }
  // Usage to charge: zero when the request was free.
  Usage BillableUsage() const;
  Int128 CostPicoUsd() const;
  // Model of the live attempt, with its price and bounds.
  Candidate Current() const;
  // Makes this candidate the current one. The index must be valid.
  void Ask(int32_t index);
};

// The database uses the same numbers.
enum class CommandKind : uint8_t {
  kAddCredit = 6,
  kSetCap = 7,
  kRepairClock = 14,
  // The entry of a correction has the same number as its command.
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

// The database uses the same numbers.
enum class CommandState : uint8_t {
  kPosted = 1,
  kPending = 2,  // waits for a second person
  kRejected = 3,
};

// A command of an owner or operator, stored so that repeating it changes nothing.
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
  std::string reference;   // payment or dispute that a correction is about
  std::string decided_by;  // the second person
  int64_t decided_us = 0;
};
// Key of the row in a State.
std::string CommandKey(std::string_view workspace, std::string_view command_id);

// The database uses the same numbers.
enum class DeadLetterState : uint8_t {
  kOpen = 1,
  kRetried = 2,
  kWrittenOff = 3,
  kAdjusted = 4,  // came too late to be settled: an adjustment charges it
};

// A settle that was refused (dead_letter.h).
struct DeadLetter {
  Id id;               // request id
  int32_t number = 0;  // per id, from 1; set when stored
  std::string workspace;
  int64_t at_us = 0;
  Deny reason = Deny::kNone;
  std::string operation;  // EncodeSettle
  DeadLetterState state = DeadLetterState::kOpen;
  // Set when it is resolved.
  int64_t resolved_us = 0;
  std::string actor;
  std::string note;
  // Newest archived month of the workspace, 0: none. Only set where the letter is resolved.
  int32_t archived_month = 0;
};
// Primary key of the row.
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

// Amounts that a batch adds to the roll-ups of a key and model (decision 53). A correction may be
// negative.
struct UsageChange {
  std::string workspace;
  std::string key_id;
  std::string model;
  int64_t admitted_us = 0;
  int64_t requests = 0;       // closed requests with output
  int64_t free_requests = 0;  // closed requests without charge or output
  Usage usage;
  int64_t charged_nano_usd = 0;
  int64_t overrun_nano_usd = 0;

  // Adds the amounts; the key stays.
  UsageChange& operator+=(const UsageChange& other);
};

// Request that an Idempotency-Key belongs to. Its hold has the outcome.
struct IdempotencyKey {
  std::string workspace;
  std::string digest;  // 32 bytes
  Id request_id;
  std::string body_digest;  // 32 bytes
  int64_t created_us = 0;
};
// Key of the row in a State.
std::string IdempotencyRowKey(const std::string& workspace, const std::string& digest);

// Rows that a batch uses. A row that is not here does not exist.
struct State {
  std::unordered_map<std::string, Wallet> wallets;       // by workspace
  std::unordered_map<std::string, Month> months;         // by MonthKey
  std::unordered_map<std::string, KeyMonth> key_months;  // by KeyMonthKey
  std::unordered_map<Id, Hold, IdHash> holds;
  std::unordered_map<std::string, Command> commands;                 // by CommandKey
  std::unordered_map<std::string, DeadLetter> dead_letters;          // by DeadLetterKey
  std::unordered_map<std::string, IdempotencyKey> idempotency_keys;  // by IdempotencyRowKey
  std::unordered_map<std::string, Lease> leases;                     // by LeaseKey
  // Workspaces whose wallet disagrees with their entries: their rows must not be written.
  std::unordered_map<std::string, std::string> broken;  // reason, by workspace
};

}  // namespace tollgate::billing
