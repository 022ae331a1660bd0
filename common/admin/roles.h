// Who may call which method of tollgate.admin.v1: the rules next to the methods
// (proto/tollgate/admin/v1/rule.proto). Access is denied by default.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "tollgate/admin/v1/rule.pb.h"
#include "tollgate/common/v1/identity.pb.h"

namespace tollgate::admin {

using common::v1::Role;
using v1::Rule;

// For example "owner"; "" for an unknown role.
std::string_view RoleName(Role role);
std::optional<Role> RoleNamed(std::string_view name);
// Whether `role` may grant `lesser`: every method open to `lesser` is open to `role`. A token never
// gets a role that its creator lacks.
bool Covers(Role role, Role lesser);

// By method: "LedgerService/GetBalance".
using Rules = std::map<std::string, Rule, std::less<>>;
// Read from the descriptors once.
const Rules& AllRules();
// Null if the method has no rule: then it is refused to everybody.
const Rule* RuleOf(std::string_view method);

// kOwn: only for what the caller created or is; the handler checks it (Caller::own_only).
enum class Allowed { kNo, kOwn, kYes };
// Whether the rule allows a member of this role.
Allowed RoleAllowed(const Rule& rule, Role role);

}  // namespace tollgate::admin
