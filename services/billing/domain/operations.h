// The operations of the ledger: plain values, one struct per kind. All are safe to repeat: those of
// a request by its id, commands by theirs.
#pragma once

#include <array>
#include <cstdint>
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
  bool check_only = false;  // only says whether it would be granted; writes nothing
};

// Raises the authorized amount of an open hold. Also a heartbeat.
struct Extend {
  Id request_id;
  std::string workspace;
  int64_t sequence = 0;  // grows with each operation of one hold
  Usage usage;
  int64_t authorized_total_nano_usd = 0;
};

// Reports progress and postpones the expiry of an open hold.
struct Heartbeat {
  Id request_id;
  std::string workspace;
  int64_t sequence = 0;
  Usage usage;
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
};

// Closes a hold without a charge.
struct Void {
  Id request_id;
  std::string workspace;
  std::string reason;
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
};

// Sets the month cap of a workspace; empty removes it.
struct SetCap {
  std::string workspace;
  std::string command_id;  // unique within the workspace
  std::optional<int64_t> cap_nano_usd;
  std::string actor;
};

// Sets the time of the workspace's newest entry back to now.
struct RepairClock {
  std::string workspace;
  std::string command_id;  // unique within the workspace
  std::string actor;
  std::string reason;
};

using Operation = std::variant<Authorize, Extend, Heartbeat, Settle, Void, Expire, AddCredit,
                               SetCap, RepairClock>;

// By Operation::index(), for logs and metrics.
inline constexpr std::array<const char*, std::variant_size_v<Operation>> kOperationNames = {
    "authorize", "extend",     "heartbeat", "settle",      "void",
    "expire",    "add_credit", "set_cap",   "repair_clock"};

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

inline bool IsAuthorize(const Operation& operation) {
  return std::holds_alternative<Authorize>(operation);
}

}  // namespace tollgate::billing
