// The ledger as one pure function: both databases and the simulation run exactly this code.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "services/billing/domain/operations.h"
#include "services/billing/domain/types.h"

namespace tollgate::billing {

struct Policy {
  int64_t hold_ttl_us = 60'000'000;  // after the last heartbeat
  int64_t slice_tokens = 4096;
  bool held_is_no_credit = false;  // 402 instead of 429 when all credit is held
  int64_t held_retry_ms = 1000;
  // Heartbeats postpone the expiry of a hold to at most this long after its admission.
  int64_t hold_max_age_us = 24LL * 3600 * 1'000'000;
  // How long after its expiry a hold may still be settled.
  int64_t late_settle_us = 24LL * 3600 * 1'000'000;
  // Older request ids are refused, so that rows of this age may be deleted.
  int64_t id_max_age_us = 7LL * 24 * 3600 * 1'000'000;
  // Tombstones are written for unknown ids up to this age: a delayed authorize arrives sooner.
  int64_t tombstone_max_age_us = 120'000'000;
  // Of refused requests of a workspace with leases: its requests may be reported after an outage.
  // As long as a gateway sends a refusal, and some more.
  int64_t admitted_tombstone_max_age_us = 900'000'000;
  // How long after the end of a month late corrections still count towards it.
  int64_t month_grace_us = 26LL * 3600 * 1'000'000;
  // How long an Idempotency-Key stands for its request.
  int64_t idempotency_us = 24LL * 3600 * 1'000'000;
  // Leases end so long after they were last renewed; a lessee admits for the first part of it.
  int64_t lease_ttl_us = 60'000'000;
  int64_t lease_margin_us = 10'000'000;
  // Corrections above this amount wait for a second person.
  int64_t second_person_above_nano_usd = 100 * kNanoPerUsd;
};

// What the audit log says of a change: an entry without its place in the chain (decision 56).
struct AuditNote {
  int64_t at_us = 0;
  std::string actor, address, action, workspace, subject, detail;
  std::string call_id;  // the request_id of the call
};

// The result of a batch. The state was changed in place; these name the changed rows, each once.
struct Applied {
  std::vector<Reply> replies;  // in the order of the operations
  std::vector<Entry> entries;  // in order per workspace
  std::vector<std::string> wallets;
  std::vector<std::string> new_wallets;       // those of wallets that must not exist yet
  std::vector<std::string> months;            // MonthKey
  std::vector<std::string> key_months;        // KeyMonthKey
  std::vector<Id> new_holds;                  // must not exist yet
  std::vector<Id> changed_holds;              // none of the new ones
  std::vector<Id> recorded_holds;             // whose usage record must be written
  std::vector<std::string> commands;          // CommandKey; must not exist yet
  std::vector<std::string> decided_commands;  // CommandKey; must exist
  std::vector<UsageChange> usage_changes;
  std::vector<DeadLetter> dead_letters;  // without their numbers; one may be stored already
  std::vector<std::string> resolved_dead_letters;  // DeadLetterKey; must exist
  std::vector<std::string> idempotency_keys;  // IdempotencyRowKey; new or of another request now
  std::vector<LeaseName> leases;              // changed, or gone from the state
  std::vector<AuditNote> audit_notes;  // of the commands that changed something, in their order
  // Broken invariants: the operation at fault was refused and changed nothing. The caller must
  // raise an alarm for each.
  std::vector<std::string> violations;
  std::vector<std::string> frozen;  // workspaces that were frozen because of one
};

// The time of an entry of this wallet: entries of a workspace never go back in time.
inline int64_t EntryTime(const Wallet& wallet, int64_t now_us) {
  return now_us > wallet.clock_us ? now_us : wallet.clock_us;
}

// Applies the operations in order. The state must contain every existing row that they concern:
// the wallets of their workspaces, the holds, commands and dead letters they name, the leases that
// they name (LeasesOf), the months of those holds, of admissions and of now, and the key months of
// those holds' keys and of authorizes with a quota, in the months of those holds and of now, which
// begin with what the key has spent there by the roll-ups where a quota or a late correction may
// begin them; of authorizes with an idempotency key, and of expired holds that came with one, the
// row of that key and the hold it names. No other row is read or changed. Everything is decided at
// now_us, the ledger's time; only the entries are dated by EntryTime.
Applied Apply(State& state, std::span<const Operation> operations, int64_t now_us,
              const Policy& policy);

// The leases that an operation reads or changes.
void AddLeasesOf(const Operation& operation, int64_t now_us, std::vector<LeaseName>& names);

// month is the row of the month of now_us, null when there is none.
Balance BalanceOf(const Wallet& wallet, const Month* month, int64_t now_us);

}  // namespace tollgate::billing
