// The ledger as one pure function: both databases and the simulation run the same code.
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
  // Maximum age for tombstones of refused requests if the workspace has leases: its requests may be
  // reported after an outage. Longer than a gateway keeps sending a refusal.
  int64_t admitted_tombstone_max_age_us = 900'000'000;
  // How long after the end of a month late corrections still count towards it.
  int64_t month_grace_us = 26LL * 3600 * 1'000'000;
  // How long an Idempotency-Key is remembered.
  int64_t idempotency_us = 24LL * 3600 * 1'000'000;
  // Time after its last renewal when a lease expires. The lessee stops admitting lease_margin_us
  // before that.
  int64_t lease_ttl_us = 60'000'000;
  int64_t lease_margin_us = 10'000'000;
  // Corrections above this amount wait for a second person.
  int64_t second_person_above_nano_usd = 100 * kNanoPerUsd;
};

// Change for the audit log: an entry without its place in the chain (decision 56).
struct AuditNote {
  int64_t at_us = 0;
  std::string actor, address, action, workspace, subject, detail;
  std::string call_id;  // request_id of the call
};

// Result of a batch. The state was changed in place; the lists name the changed rows, each once.
struct Applied {
  std::vector<Reply> replies;  // in the order of the operations
  std::vector<Entry> entries;  // in order per workspace
  std::vector<std::string> wallets;
  std::vector<std::string> new_wallets;       // names of wallets that must not exist yet
  std::vector<std::string> months;            // MonthKey
  std::vector<std::string> key_months;        // KeyMonthKey
  std::vector<Id> new_holds;                  // must not exist yet
  std::vector<Id> changed_holds;              // without the new ones
  std::vector<Id> recorded_holds;             // holds whose usage record must be written
  std::vector<std::string> commands;          // CommandKey; must not exist yet
  std::vector<std::string> decided_commands;  // CommandKey; must exist
  std::vector<UsageChange> usage_changes;
  std::vector<DeadLetter> dead_letters;            // without their numbers; may be stored already
  std::vector<std::string> resolved_dead_letters;  // DeadLetterKey; must exist
  std::vector<std::string> idempotency_keys;       // IdempotencyRowKey; new or changed
  std::vector<LeaseName> leases;                   // changed in the state or removed from it
  std::vector<AuditNote> audit_notes;              // of commands that changed something, in order
  // Broken invariants. The operation at fault was refused and changed nothing. The caller must
  // raise an alert for each.
  std::vector<std::string> violations;
  std::vector<std::string> frozen;  // workspaces frozen because of a violation
};

// Time of an entry of this wallet. Entries of a workspace never go back in time.
inline int64_t EntryTime(const Wallet& wallet, int64_t now_us) {
  return now_us > wallet.clock_us ? now_us : wallet.clock_us;
}

// Applies the operations in order. The state must contain every existing row that they concern:
// - the wallets of their workspaces; the holds, commands, dead letters and leases that they name
//   (LeasesOf);
// - the months of those holds, of the admissions and of now_us;
// - the key months of those holds' keys and of authorizes with a quota, in the months of those
//   holds and of now_us; of the keys that share their quota, the rows that exist. Where a quota or
//   a late correction may create such a row, it starts with the key's spend in the roll-ups;
// - for authorizes with an idempotency key, and for expired holds that came with one: the row of
//   that key and the hold that it names.
// Other rows are neither read nor changed. Decisions use now_us, the ledger's time; only entries
// are dated by EntryTime.
Applied Apply(State& state, std::span<const Operation> operations, int64_t now_us,
              const Policy& policy);

// Adds the leases that an operation reads or changes.
void AddLeasesOf(const Operation& operation, int64_t now_us, std::vector<LeaseName>& names);

// month: the row for the month of now_us, or null.
Balance BalanceOf(const Wallet& wallet, const Month* month, int64_t now_us);

}  // namespace tollgate::billing
