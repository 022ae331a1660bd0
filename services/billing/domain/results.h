// Which results each kind of operation can have.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <variant>

#include "services/billing/domain/operations.h"

namespace tollgate::billing {

namespace results_internal {

using Set = uint32_t;  // one bit per Deny

constexpr Set SetOf(std::initializer_list<Deny> denies) {
  // Any operation may name an invalid workspace or find a ledger that cannot decide.
  Set set = 1U << static_cast<int>(Deny::kNone) | 1U << static_cast<int>(Deny::kInvalid) |
            1U << static_cast<int>(Deny::kUnavailable);
  for (const Deny deny : denies) set |= 1U << static_cast<int>(deny);
  return set;
}

// Indexed by Operation::index().
inline constexpr std::array<Set, std::variant_size_v<Operation>> kPossible = {
    // authorize
    SetOf({Deny::kNoCredit, Deny::kCap, Deny::kHeld, Deny::kFrozen, Deny::kIdReuse, Deny::kClosed,
           Deny::kQuota, Deny::kFrozenByCheck, Deny::kClock, Deny::kIdempotencyBody,
           Deny::kIdempotencyRunning, Deny::kIdempotencyDone}),
    // extend
    SetOf({Deny::kNoCredit, Deny::kCap, Deny::kHeld, Deny::kQuota, Deny::kIdReuse, Deny::kClosed}),
    SetOf({Deny::kIdReuse, Deny::kClosed}),                             // heartbeat
    SetOf({Deny::kIdReuse, Deny::kClosed}),                             // settle
    SetOf({Deny::kIdReuse, Deny::kClosed}),                             // void
    SetOf({Deny::kClosed}),                                             // expire
    SetOf({Deny::kIdReuse, Deny::kUnknownWorkspace}),                   // add_credit
    SetOf({Deny::kIdReuse, Deny::kUnknownWorkspace}),                   // set_cap
    SetOf({Deny::kNoCredit, Deny::kIdReuse, Deny::kUnknownWorkspace}),  // correct
    SetOf({Deny::kNoCredit, Deny::kIdReuse, Deny::kUnknownWorkspace, Deny::kSamePerson}),  // decide
    SetOf({Deny::kIdReuse}),  // repair_clock
    // resolve_dead_letter
    SetOf({Deny::kIdReuse, Deny::kClosed, Deny::kUnknownDeadLetter, Deny::kSamePerson}),
    SetOf({}),                                                     // open_wallet
    SetOf({Deny::kNoLease, Deny::kFrozen, Deny::kFrozenByCheck}),  // take_lease
    SetOf({}),                                                     // expire_lease
};

}  // namespace results_internal

// kind: Operation::index().
constexpr bool CanResultIn(size_t kind, Deny deny) {
  return (results_internal::kPossible[kind] >> static_cast<int>(deny) & 1U) != 0;
}

}  // namespace tollgate::billing
