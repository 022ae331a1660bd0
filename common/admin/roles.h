// The table of method × role for tollgate.admin.v1. Access is denied by default.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tollgate/common/v1/identity.pb.h"

namespace tollgate::admin {

using common::v1::Role;

// For example "owner"; "" for an unknown role.
std::string_view RoleName(Role role);
std::optional<Role> RoleNamed(std::string_view name);
// Whether `role` may grant `lesser`: every method open to `lesser` is open to `role`. A token never
// gets a role that its creator lacks.
bool Covers(Role role, Role lesser);

// One method of the table.
struct MethodRule {
  // "LedgerService/GetBalance", in tollgate.admin.v1.
  std::string_view method;
  // O owner, A admin, B billing, D developer, V viewer of the request's workspace. A small letter:
  // only for what the caller created or is (the handler checks it, Caller::own_only). P: platform
  // operator. *: every person, with or without a workspace.
  std::string_view who;
  // Requires a fresh sign-in, which an access token never has.
  bool step_up = false;
  // Refuses access tokens, for example because a token cannot create tokens.
  bool no_tokens = false;
};
// Null if the method has no row: then it is refused to everybody.
const MethodRule* RuleOf(std::string_view method);
std::span<const MethodRule> AllRules();

enum class Allowed { kNo, kOwn, kYes };
// Whether the row's letters allow a member of this role.
Allowed RoleAllowed(const MethodRule& rule, Role role);
bool HasLetter(const MethodRule& rule, char letter);

}  // namespace tollgate::admin
