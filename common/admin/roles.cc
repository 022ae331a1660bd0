#include "common/admin/roles.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor_database.h>

#include <algorithm>
#include <vector>

namespace tollgate::admin {
namespace {

using google::protobuf::DescriptorPool;

constexpr std::string_view kFolder = "tollgate/admin/v1/";
constexpr std::string_view kRoleNames[] = {"owner", "admin", "billing", "developer", "viewer"};

Rules ReadRules() {
  Rules rules;
  std::vector<std::string> files;
  DescriptorPool::internal_generated_database()->FindAllFileNames(&files);
  for (const std::string& name : files) {
    if (!name.starts_with(kFolder)) continue;
    const auto* file = DescriptorPool::generated_pool()->FindFileByName(name);
    for (int s = 0; s < file->service_count(); ++s) {
      for (int m = 0; m < file->service(s)->method_count(); ++m) {
        const auto* method = file->service(s)->method(m);
        if (!method->options().HasExtension(v1::rule)) continue;
        rules[method->service()->name() + "/" + method->name()] =
            method->options().GetExtension(v1::rule);
      }
    }
  }
  return rules;
}

bool Has(const google::protobuf::RepeatedField<int>& roles, Role role) {
  return std::ranges::find(roles, role) != roles.end();
}

}  // namespace

std::string_view RoleName(Role role) {
  return role >= Role::ROLE_OWNER && role <= Role::ROLE_VIEWER ? kRoleNames[role - Role::ROLE_OWNER]
                                                               : "";
}

std::optional<Role> RoleNamed(std::string_view name) {
  const auto* found = std::ranges::find(kRoleNames, name);
  if (found == std::end(kRoleNames)) return std::nullopt;
  return static_cast<Role>(Role::ROLE_OWNER + (found - kRoleNames));
}

const Rules& AllRules() {
  static const Rules rules = ReadRules();
  return rules;
}

const Rule* RuleOf(std::string_view method) {
  const auto found = AllRules().find(method);
  return found == AllRules().end() ? nullptr : &found->second;
}

Allowed RoleAllowed(const Rule& rule, Role role) {
  if (Has(rule.roles(), role)) return Allowed::kYes;
  return Has(rule.own_roles(), role) ? Allowed::kOwn : Allowed::kNo;
}

bool Covers(Role role, Role lesser) {
  return std::ranges::all_of(AllRules(), [&](const auto& method_and_rule) {
    const Rule& rule = method_and_rule.second;
    return RoleAllowed(rule, role) >= RoleAllowed(rule, lesser);
  });
}

}  // namespace tollgate::admin
