// The operations of the ledger: plain values, one struct per kind. All are safe to repeat: those of
// a request by its id, commands by theirs.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

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
  // The models that may answer instead, in the order of the tries; part of the body.
  std::vector<Candidate> fallbacks;
  std::optional<int64_t> key_quota_nano_usd;  // of the key per UTC month
  // As in Hold; a repetition may differ in them.
  Surface surface = Surface::kUnknown;
  bool streamed = false;
  std::string client_request_id;
  std::string idempotency_key_digest;   // 32 bytes, or both empty
  std::string idempotency_body_digest;  // may differ only between requests
  // Number of the try, from 0; not part of the body.
  int32_t attempt = 0;
  // Which model this try asks: 0 the first one, n the fallback n - 1. Changes with the try only.
  int32_t candidate = 0;
  bool check_only = false;  // only says whether it would be granted; writes nothing
};

// How a router has admitted a request from its lease. An operation that carries it opens the hold
// first, unless it is there. What neither the lease nor credit covers is overrun once it is
// charged: the request has run already.
struct Admission {
  Authorize authorize;  // of one model, without a quota, an idempotency key and check_only
  std::string lessee;
  int32_t month = 0;  // of the lease
  int64_t authorized_nano_usd = 0;
};

// Raises the authorized amount of an open hold. Also a heartbeat.
struct Extend {
  Id request_id;
  std::string workspace;
  int64_t sequence = 0;  // grows with each operation of one hold
  Usage usage;
  int64_t authorized_total_nano_usd = 0;
  int32_t attempt = 0;
  std::shared_ptr<const Admission> admission = nullptr;  // of a request that has one
};

// Reports progress and postpones the expiry of an open hold.
struct Heartbeat {
  Id request_id;
  std::string workspace;
  int64_t sequence = 0;
  Usage usage;
  int32_t attempt = 0;
  std::shared_ptr<const Admission> admission = nullptr;  // of a request that has one
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
  std::shared_ptr<const Admission> admission = nullptr;  // of a request that has one
};

// Closes a hold without a charge. refused: the caller's answer was an error, so a charge that was
// made is undone (decision 52).
struct Void {
  Id request_id;
  std::string workspace;
  std::string reason;
  bool refused = false;
};

// Closes a hold without a heartbeat for too long. The ledger submits it to itself.
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
  // Of the client that asked for it, for the audit log; may be empty, as in those below.
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
// Policy::second_person_above_nano_usd it waits for a Decide of another person.
struct Correct {
  std::string workspace;
  std::string command_id;  // unique within the workspace
  CommandKind kind = CommandKind::kRefund;
  int64_t amount_nano_usd = 0;  // zero for freeze, unfreeze
  bool granted = false;         // adjustments: of granted instead of paid credit
  std::string actor;
  std::string reason;                 // required
  std::string reference;              // of the payment or dispute; may be empty
  Freeze freeze = Freeze::kOperator;  // kFreeze only: why
  std::string address = {};
};

// The second person's word on a pending correction.
struct Decide {
  std::string workspace;
  std::string command_id;  // of the correction
  bool approve = false;
  std::string actor;  // not the one who asked for it
  std::string reason;
  std::string address = {};
  std::string call_id = {};  // the request_id of the decision; may be empty
};

// Opens the wallet of a new workspace. Changes nothing when it is open (decision 64).
struct OpenWallet {
  std::string workspace;
  std::string actor = {};
  std::string address = {};
  std::string call_id = {};
};

// Sets the time of the workspace's newest entry back to now.
struct RepairClock {
  std::string workspace;
  std::string command_id;  // unique within the workspace
  std::string actor;
  std::string reason;
  std::string address = {};
};

// A person's word on a dead letter: applies its settle again, which may be refused again, or gives
// it up.
struct ResolveDeadLetter {
  Id request_id;
  std::string workspace;
  int32_t number = 0;
  DeadLetterState to = DeadLetterState::kRetried;
  std::string actor;
  std::string reason;  // required
  std::string address = {};
  std::string call_id = {};
};

// Enlarges and renews a lease, or gives its rest back.
struct TakeLease {
  std::string workspace;
  std::string lessee;
  int32_t month = 0;  // of the lease that the lessee has; 0: none
  // By all requests that it has admitted from it, also those that the ledger does not know yet.
  int64_t used_nano_usd = 0;
  int64_t wanted_nano_usd = 0;  // beyond that; 0: gives back
};

// Closes a lease whose time is over. The ledger submits it to itself.
struct ExpireLease {
  std::string workspace;
  std::string lessee;
  int32_t month = 0;
};

using Operation =
    std::variant<Authorize, Extend, Heartbeat, Settle, Void, Expire, AddCredit, SetCap, Correct,
                 Decide, RepairClock, ResolveDeadLetter, OpenWallet, TakeLease, ExpireLease>;

// By Operation::index(), for logs and metrics.
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

// Whether the audit log has it when it changes something.
inline bool IsAudited(const Operation& operation) {
  return IsCommand(operation) || std::holds_alternative<OpenWallet>(operation) ||
         std::holds_alternative<ResolveDeadLetter>(operation);
}

// Null: it carries none.
inline const Admission* AdmissionOf(const Operation& operation) {
  return std::visit(
      [](const auto& op) -> const Admission* {
        if constexpr (requires { op.admission; }) {
          return op.admission.get();
        } else {
          return nullptr;
        }
      },
      operation);
}

inline bool IsAuthorize(const Operation& operation) {
  return std::holds_alternative<Authorize>(operation);
}

// Whether the operation must not run once its caller was told that it failed: its hold would be
// unused, or its money would move after all. Operations that release or settle always run.
inline bool EndsWithItsCall(const Operation& operation) {
  if (const auto* take = std::get_if<TakeLease>(&operation)) return take->wanted_nano_usd > 0;
  return IsAuthorize(operation) || IsCommand(operation);
}

}  // namespace tollgate::billing
