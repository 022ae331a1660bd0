// The operations of the ledger: plain values, one struct per kind. All are safe to repeat: the
// request id or the command id identifies them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "services/billing/domain/types.h"

namespace tollgate::billing {

// Opens a hold before the engine runs.
struct Authorize {
  Id request_id;
  std::string workspace;
  std::string key_id;
  std::string model;
  Rates rates;
  int64_t price_version = 0;
  int64_t prompt_bound = 0;  // tokens, at most
  int64_t output_bound = 0;
  // Models that may answer instead, in the order in which they are tried. Part of the body.
  std::vector<Candidate> fallbacks;
  std::optional<int64_t> key_quota_nano_usd;  // the key's quota per UTC month
  // As in Hold. A repetition may have others.
  std::vector<std::string> quota_keys;
  // As in Hold. A repetition may have other values.
  Surface surface = Surface::kUnknown;
  bool streamed = false;
  std::string client_request_id;
  std::string idempotency_key_digest;   // 32 bytes, or both empty
  std::string idempotency_body_digest;  // may differ only between requests
  // Number of the attempt, from 0. Not part of the body.
  int32_t attempt = 0;
  // Model of this attempt: 0 is the first one, n the fallback n - 1. Only a new attempt may change
  // it.
  int32_t candidate = 0;
  bool check_only = false;  // only returns whether it would be granted; writes nothing
};

// How a router has admitted a request from its lease. An operation that carries one opens the hold
// first, unless it exists. The request has already run, so a charge that neither the lease nor
// credit covers is overrun.
struct Admission {
  Authorize authorize;  // has one model; no quota, idempotency key or check_only
  std::string lessee;
  int32_t month = 0;  // month of the lease
  int64_t authorized_nano_usd = 0;
};

// Raises the authorized amount of an open hold, and counts as a heartbeat.
struct Extend {
  Id request_id;
  std::string workspace;
  int64_t sequence = 0;  // increases with each operation of one hold
  Usage usage;
  int64_t authorized_total_nano_usd = 0;
  int32_t attempt = 0;
  std::shared_ptr<const Admission> admission = nullptr;  // null unless admitted from a lease
};

// Reports progress and postpones the expiry of an open hold.
struct Heartbeat {
  Id request_id;
  std::string workspace;
  int64_t sequence = 0;
  Usage usage;
  int32_t attempt = 0;
  std::shared_ptr<const Admission> admission = nullptr;  // null unless admitted from a lease
};

// Closes a hold: charges the cost of the usage and releases the rest.
struct Settle {
  Id request_id;
  std::string workspace;
  int64_t sequence = 0;
  Usage usage;
  Outcome outcome = Outcome::kNone;
  bool cut_by_credit = false;
  bool estimated = false;
  std::string engine;
  int64_t first_token_us = 0;
  int32_t attempt = 0;
  std::shared_ptr<const Admission> admission = nullptr;  // null unless admitted from a lease
};

// Closes a hold without a charge. refused: the caller got an error, so a charge that was made is
// undone (decision 52).
struct Void {
  Id request_id;
  std::string workspace;
  std::string reason;
  bool refused = false;
};

// Closes a hold that has had no heartbeat for too long. The ledger submits it itself.
struct Expire {
  Id request_id;
  std::string workspace;
};

struct AddCredit {
  std::string workspace;
  std::string command_id;  // unique within the workspace
  int64_t amount_nano_usd = 0;
  bool granted = false;
  std::string actor;
  std::string reason;
  bool open_only = false;  // refused when the workspace has no wallet (OpenWallet)
  // Client address for the audit log. May be empty, also in the commands below.
  std::string address = {};
};

// Sets the month cap of a workspace; empty removes it.
struct SetCap {
  std::string workspace;
  std::string command_id;  // unique within the workspace
  std::optional<int64_t> cap_nano_usd;
  std::string actor;
  bool open_only = false;  // as in AddCredit
  std::string address = {};
};

// Corrects the ledger by new entries: refund, adjustment, freeze, chargeback, write-off. Above
// Policy::second_person_above_nano_usd it waits for another person's Decide.
struct Correct {
  std::string workspace;
  std::string command_id;  // unique within the workspace
  CommandKind kind = CommandKind::kRefund;
  int64_t amount_nano_usd = 0;  // zero for freeze, unfreeze
  bool granted = false;         // adjustments: changes granted instead of paid credit
  std::string actor;
  std::string reason;                 // required
  std::string reference;              // payment or dispute; may be empty
  Freeze freeze = Freeze::kOperator;  // reason, for kFreeze only
  std::string address = {};
  bool second_person = false;  // waits for a second person, whatever the amount
};

// The second person's decision on a pending correction.
struct Decide {
  std::string workspace;
  std::string command_id;  // id of the correction
  bool approve = false;
  std::string actor;  // must differ from the requester
  std::string reason;
  std::string address = {};
  std::string call_id = {};  // request_id of the decision; may be empty
};

// Opens the wallet of a new workspace. Does nothing if it exists (decision 64).
struct OpenWallet {
  std::string workspace;
  std::string actor = {};
  std::string address = {};
  std::string call_id = {};
};

// Sets the time of the workspace's newest entry back to the current time.
struct RepairClock {
  std::string workspace;
  std::string command_id;  // unique within the workspace
  std::string actor;
  std::string reason;
  std::string address = {};
};

// A person's decision on a dead letter: applies its settle again, which may be refused again, or
// writes it off. A settle that only comes too late becomes a debit adjustment, which waits for a
// second person.
struct ResolveDeadLetter {
  Id request_id;
  std::string workspace;
  int32_t number = 0;
  DeadLetterState to = DeadLetterState::kRetried;
  std::string actor;
  std::string reason;  // required
  std::string address = {};
  std::string call_id = {};
  bool proved = false;  // the actor can be one of two persons
  // For a retry: the admission of the letter's settle, so that its rows are loaded.
  std::shared_ptr<const Admission> letter_admission = nullptr;
};

// Enlarges and renews a lease, or gives back its rest.
struct TakeLease {
  std::string workspace;
  std::string lessee;
  int32_t month = 0;  // month of the lessee's lease; 0: none
  // Amount used by all requests admitted from the lease, including those that the ledger does not
  // know yet.
  int64_t used_nano_usd = 0;
  int64_t wanted_nano_usd = 0;  // beyond used_nano_usd; 0: gives back
  // Part of used_nano_usd whose requests the ledger has settled or refused.
  int64_t settled_nano_usd = 0;
};

// Closes an expired lease. The ledger submits it itself.
struct ExpireLease {
  std::string workspace;
  std::string lessee;
  int32_t month = 0;
};

using Operation =
    std::variant<Authorize, Extend, Heartbeat, Settle, Void, Expire, AddCredit, SetCap, Correct,
                 Decide, RepairClock, ResolveDeadLetter, OpenWallet, TakeLease, ExpireLease>;

// Indexed by Operation::index(), for logs and metrics.
inline constexpr std::array<const char*, std::variant_size_v<Operation>> kOperationNames = {
    "authorize",   "extend",     "heartbeat",   "settle", "void",         "expire",
    "add_credit",  "set_cap",    "correct",     "decide", "repair_clock", "resolve_dead_letter",
    "open_wallet", "take_lease", "expire_lease"};

inline const std::string& WorkspaceOf(const Operation& operation) {
  return std::visit([](const auto& op) -> const std::string& { return op.workspace; }, operation);
}

// The empty id for commands.
inline Id RequestIdOf(const Operation& operation) {
  return std::visit(
      [](const auto& op) {
        if constexpr (requires { op.request_id; }) {
          return op.request_id;
        } else {
          return Id();
        }
      },
      operation);
}

// Empty for the operations of a request.
inline std::string_view CommandIdOf(const Operation& operation) {
  return std::visit(
      [](const auto& op) -> std::string_view {
        if constexpr (requires { op.command_id; }) {
          return op.command_id;
        } else {
          return {};
        }
      },
      operation);
}

inline bool IsCommand(const Operation& operation) { return !CommandIdOf(operation).empty(); }

// Whether a change by this operation goes to the audit log.
inline bool IsAudited(const Operation& operation) {
  return IsCommand(operation) || std::holds_alternative<OpenWallet>(operation) ||
         std::holds_alternative<ResolveDeadLetter>(operation);
}

// Returns the admission whose rows the operation may change, or null.
inline const Admission* AdmissionOf(const Operation& operation) {
  return std::visit(
      [](const auto& op) -> const Admission* {
        if constexpr (requires { op.admission; }) {
          return op.admission.get();
        } else if constexpr (requires { op.letter_admission; }) {
          return op.letter_admission.get();
        } else {
          return nullptr;
        }
      },
      operation);
}

inline bool IsAuthorize(const Operation& operation) {
  return std::holds_alternative<Authorize>(operation);
}

// Whether the operation must not run after its caller got an error: its hold would be unused, or
// its money would move after all. Operations that release or settle always run.
inline bool EndsWithItsCall(const Operation& operation) {
  if (const auto* take = std::get_if<TakeLease>(&operation)) return take->wanted_nano_usd > 0;
  return IsAuthorize(operation) || IsCommand(operation);
}

}  // namespace tollgate::billing
