#include "common/admin/roles.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor_database.h>
#include <gtest/gtest.h>

#include <set>

namespace tollgate::admin {
namespace {

using google::protobuf::DescriptorPool;

// Every method of the linked protos of tollgate.admin.v1.
std::vector<const google::protobuf::MethodDescriptor*> Methods() {
  std::vector<std::string> files;
  DescriptorPool::internal_generated_database()->FindAllFileNames(&files);
  std::vector<const google::protobuf::MethodDescriptor*> methods;
  for (const std::string& name : files) {
    if (!name.starts_with("tollgate/admin/v1/")) continue;
    const auto* file = DescriptorPool::generated_pool()->FindFileByName(name);
    for (int s = 0; s < file->service_count(); ++s) {
      for (int m = 0; m < file->service(s)->method_count(); ++m) {
        methods.push_back(file->service(s)->method(m));
      }
    }
  }
  return methods;
}

// Access is denied by default, so a method without a row would be unusable.
TEST(RolesTest, EveryMethodHasARow) {
  const auto methods = Methods();
  EXPECT_GT(methods.size(), 40U) << "the protos of the admin API are not linked";
  for (const auto* method : methods) {
    EXPECT_NE(RuleOf(method->service()->name() + "/" + method->name()), nullptr)
        << method->full_name() << " has no row in common/admin/roles.cc";
  }
}

TEST(RolesTest, EveryRowIsOfAMethod) {
  std::set<std::string> names;
  for (const auto* method : Methods()) {
    names.insert(method->service()->name() + "/" + method->name());
  }
  for (const MethodRule& rule : AllRules()) {
    EXPECT_TRUE(names.contains(std::string(rule.method))) << rule.method;
  }
}

// Admit finds the method by the type of its request.
TEST(RolesTest, EveryMethodHasARequestTypeOfItsOwn) {
  std::set<std::string> types;
  for (const auto* method : Methods()) {
    EXPECT_TRUE(types.insert(method->input_type()->full_name()).second) << method->full_name();
    EXPECT_EQ(method->input_type()->file(), method->file()) << method->full_name();
  }
}

TEST(RolesTest, TheTableIsWellFormed) {
  std::set<std::string_view> seen;
  for (const MethodRule& rule : AllRules()) {
    EXPECT_TRUE(seen.insert(rule.method).second) << rule.method << " has two rows";
    EXPECT_FALSE(rule.who.empty()) << rule.method;
    EXPECT_EQ(rule.who.find_first_not_of("OABDVobdvP*"), std::string_view::npos) << rule.method;
  }
}

// Rules that hold whatever is added to the table, stated a second time.
TEST(RolesTest, TheImportantRowsAreWhatTheyShouldBe) {
  const auto allowed = [](std::string_view method, Role role) {
    const MethodRule* rule = RuleOf(method);
    return rule == nullptr ? Allowed::kNo : RoleAllowed(*rule, role);
  };
  for (const Role role : {Role::ROLE_BILLING, Role::ROLE_DEVELOPER, Role::ROLE_VIEWER}) {
    EXPECT_EQ(allowed("MemberService/UpdateMember", role), Allowed::kNo);
    EXPECT_EQ(allowed("InvitationService/CreateInvitation", role), Allowed::kNo);
    EXPECT_EQ(allowed("MemberService/DeleteMember", role), Allowed::kOwn);
    EXPECT_EQ(allowed("LedgerService/UpdateCap", role), Allowed::kNo);
  }
  EXPECT_EQ(allowed("LedgerService/UpdateCap", Role::ROLE_ADMIN), Allowed::kNo);
  EXPECT_EQ(allowed("LedgerService/UpdateCap", Role::ROLE_OWNER), Allowed::kYes);
  EXPECT_EQ(allowed("MemberService/UpdateMember", Role::ROLE_ADMIN), Allowed::kNo);
  EXPECT_EQ(allowed("PaymentService/CreatePayment", Role::ROLE_BILLING), Allowed::kYes);
  EXPECT_EQ(allowed("PaymentService/CreatePayment", Role::ROLE_ADMIN), Allowed::kNo);
  EXPECT_EQ(allowed("KeyService/CreateKey", Role::ROLE_DEVELOPER), Allowed::kYes);
  EXPECT_EQ(allowed("KeyService/CreateKey", Role::ROLE_VIEWER), Allowed::kNo);
  EXPECT_EQ(allowed("KeyService/RevokeKey", Role::ROLE_DEVELOPER), Allowed::kOwn);
  EXPECT_EQ(allowed("LedgerService/GetBalance", Role::ROLE_VIEWER), Allowed::kYes);
  for (int r = common::v1::ROLE_OWNER; r <= common::v1::ROLE_VIEWER; ++r) {
    for (const char* method : {"AdjustmentService/CreateAdjustment", "LedgerService/RepairClock",
                               "LedgerService/FreezeWorkspace", "LimitService/UpdateLimits",
                               "AuditService/VerifyAuditEntries"}) {
      EXPECT_EQ(allowed(method, static_cast<Role>(r)), Allowed::kNo) << method;
    }
  }
  EXPECT_EQ(allowed("LedgerService/GetBalance", Role::ROLE_UNSPECIFIED), Allowed::kNo);
}

// A token or an invitation never grants more than its creator has.
TEST(RolesTest, ARoleCoversTheRolesBelowIt) {
  const std::set<std::pair<Role, Role>> covered = {
      {Role::ROLE_OWNER, Role::ROLE_OWNER},         {Role::ROLE_OWNER, Role::ROLE_ADMIN},
      {Role::ROLE_OWNER, Role::ROLE_BILLING},       {Role::ROLE_OWNER, Role::ROLE_DEVELOPER},
      {Role::ROLE_OWNER, Role::ROLE_VIEWER},        {Role::ROLE_ADMIN, Role::ROLE_ADMIN},
      {Role::ROLE_ADMIN, Role::ROLE_DEVELOPER},     {Role::ROLE_ADMIN, Role::ROLE_VIEWER},
      {Role::ROLE_BILLING, Role::ROLE_BILLING},     {Role::ROLE_BILLING, Role::ROLE_VIEWER},
      {Role::ROLE_DEVELOPER, Role::ROLE_DEVELOPER}, {Role::ROLE_DEVELOPER, Role::ROLE_VIEWER},
      {Role::ROLE_VIEWER, Role::ROLE_VIEWER}};
  for (int a = common::v1::ROLE_OWNER; a <= common::v1::ROLE_VIEWER; ++a) {
    for (int b = common::v1::ROLE_OWNER; b <= common::v1::ROLE_VIEWER; ++b) {
      const Role role = static_cast<Role>(a), lesser = static_cast<Role>(b);
      EXPECT_EQ(Covers(role, lesser), covered.contains({role, lesser}))
          << RoleName(role) << " and " << RoleName(lesser);
    }
  }
}

TEST(RolesTest, RolesHaveNames) {
  for (int r = common::v1::ROLE_OWNER; r <= common::v1::ROLE_VIEWER; ++r) {
    EXPECT_EQ(RoleNamed(RoleName(static_cast<Role>(r))), static_cast<Role>(r));
  }
  EXPECT_EQ(RoleNamed("root"), std::nullopt);
  EXPECT_EQ(RoleNamed(""), std::nullopt);
}

}  // namespace
}  // namespace tollgate::admin
