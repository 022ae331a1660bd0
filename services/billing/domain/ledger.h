// The ledger as one pure function: every storage and the simulator run exactly this.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "services/billing/domain/types.h"

namespace tollgate::billing {

struct Policy {
  int64_t hold_ttl_us = 60'000'000;  // after the last sign of life
  int64_t slice_tokens = 4096;
  bool held_is_no_credit = false;  // answer 402 instead of 429 for credit that is wholly held
  int64_t held_retry_ms = 1000;
  // A hold lives at most this long, whatever its signs of life say.
  int64_t hold_life_us = 24LL * 3600 * 1'000'000;
  // How long after its expiry a hold may still be settled.
  int64_t late_us = 24LL * 3600 * 1'000'000;
  // Older ids are refused, so that rows this old may be dropped.
  int64_t id_age_us = 7LL * 24 * 3600 * 1'000'000;
  // After the end of a month, its books take late corrections for this long.
  int64_t month_grace_us = 26LL * 3600 * 1'000'000;
};

// What a batch did. The state was changed in place; these name the rows that changed, each once.
struct Applied {
  std::vector<Reply> replies;  // in the order of the operations
  std::vector<Entry> entries;  // in order per workspace
  std::vector<std::string> wallets;
  std::vector<std::string> months;    // MonthKey
  std::vector<Id> new_holds;          // must not exist yet
  std::vector<Id> changed_holds;      // none of the new ones
  std::vector<Id> recorded_holds;     // whose usage record is to be written
  std::vector<std::string> commands;  // CommandKey; must not exist yet
  // Broken invariants: the operation at fault was refused and changed nothing. Never empty
  // silently: the caller must raise an alarm.
  std::vector<std::string> violations;
};

// The time that operations on this wallet see: its books never run backwards.
inline int64_t LedgerTime(const Wallet& wallet, int64_t now_us) {
  return now_us > wallet.clock_us ? now_us : wallet.clock_us;
}

// Months whose rows Apply may touch for this workspace at that time are: the current one, the month
// of every hold that is named, and nothing else. The state must hold all rows that the operations
// name.
Applied Apply(State& state, std::span<const Op> ops, int64_t now_us, const Policy& policy);

// The balance as it stands; month is that of the time given.
Balance BalanceOf(const Wallet& wallet, const Month* month, int64_t at_us);

}  // namespace tollgate::billing
