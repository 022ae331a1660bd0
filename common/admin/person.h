// Persons, for rules that need two of them (decision 57, ADR 0053).
#pragma once

#include <optional>
#include <string>

#include "common/admin/failure.h"

namespace tollgate::admin {

struct Caller;

struct Person {
  std::string actor;  // as in the audit log
  // Name under which the acts of the person are summed up: the same for all sessions and tokens of
  // a user, and the same for all callers whose names nobody has checked.
  std::string account;
  // Why the caller cannot be one of two persons; empty if they can.
  std::optional<Failure> unproved = {};
};
Person PersonOf(const Caller& caller);

// Fails unless the person can be one of two.
AdminResult<void> RequireProved(const Person& person);
// Fails unless the person can be the second one after this actor. Both must be known in the same
// way, by certificates or by sessions, because a human may have one of each.
AdminResult<void> RequireSecondPerson(const Person& second, const std::string& first_actor);

}  // namespace tollgate::admin
