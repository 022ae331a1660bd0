// The one table of who may call which method of tollgate.admin.v1: method × role, deny by default.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tollgate/common/v1/identity.pb.h"

namespace tollgate::admin {

using common::v1::Role;

// "owner"; "" for a role that does not exist.
std::string_view RoleName(Role role);
std::optional<Role> RoleNamed(std::string_view name);
// What a member of this role may be given in turn: whether every method of `lesser` is open to
// `role`. Tokens get no role that their maker has not.
bool Covers(Role role, Role lesser);

// One method of the table.
struct MethodRule {
  // "LedgerService/GetBalance", in tollgate.admin.v1.
  std::string_view method;
  // O owner, A admin, B billing, D developer, V viewer of the request's workspace; a small letter:
  // only for what the caller made or is (the handler checks it, Caller::own_only). P platform
  // operator. * every person, with or without a workspace.
  std::string_view who;
  // Wants a fresh sign-in, which an access token never is.
  bool step_up = false;
  // Not with an access token: a token cannot make tokens.
  bool no_tokens = false;
};
// Null: nobody may call it.
const MethodRule* RuleOf(std::string_view method);
std::span<const MethodRule> AllRules();

enum class Allowed { kNo, kOwn, kYes };
// Whether the table's letters let a member of this role pass.
Allowed RoleAllowed(const MethodRule& rule, Role role);
bool HasLetter(const MethodRule& rule, char letter);

}  // namespace tollgate::admin
