// Every method of the admin API, called with every role on the real services: a method is refused
// for the role exactly where its rule says so.
#include <google/api/annotations.pb.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor_database.h>
#include <google/protobuf/dynamic_message.h>
#include <grpcpp/generic/generic_stub.h>

#include <future>
#include <map>

#include "common/admin/roles.h"
#include "tests/integration/people_world.h"

namespace tollgate::test {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::Message;
using google::protobuf::MethodDescriptor;

class PeopleRolesTest : public PeopleWorld {
 protected:
  static std::vector<const MethodDescriptor*> Methods() {
    std::vector<std::string> files;
    const auto* pool = google::protobuf::DescriptorPool::generated_pool();
    google::protobuf::DescriptorPool::internal_generated_database()->FindAllFileNames(&files);
    std::vector<const MethodDescriptor*> methods;
    for (const std::string& name : files) {
      if (!name.starts_with("tollgate/admin/v1/")) continue;
      const auto* file = pool->FindFileByName(name);
      for (int s = 0; s < file->service_count(); ++s) {
        for (int m = 0; m < file->service(s)->method_count(); ++m) {
          methods.push_back(file->service(s)->method(m));
        }
      }
    }
    return methods;
  }

  // A request that names a resource in acme, as the path of the method's HTTP rule does:
  // {member.name=workspaces/*/members/*} becomes "workspaces/acme/members/x".
  static std::unique_ptr<Message> RequestOf(const MethodDescriptor& method) {
    auto* factory = google::protobuf::MessageFactory::generated_factory();
    std::unique_ptr<Message> request(factory->GetPrototype(method.input_type())->New());
    const auto& http = method.options().GetExtension(google::api::http);
    std::string path = http.get() + http.post() + http.patch() + http.delete_() + http.put();
    const size_t open = path.find('{'), close = path.find('}');
    const size_t equals = path.find('=');
    std::string field = "parent", name = "workspaces/acme";
    if (open != std::string::npos && equals < close) {
      field = path.substr(open + 1, equals - open - 1);
      name = path.substr(equals + 1, close - equals - 1);
      bool first = true;
      for (size_t at = name.find('*'); at != std::string::npos; at = name.find('*')) {
        const bool workspace = first && name.starts_with("workspaces/");
        const bool user = first && name.starts_with("users/");
        name.replace(at, name.compare(at, 2, "**") == 0 ? 2 : 1,
                     workspace ? "acme"
                     : user    ? "me"
                               : "x");
        first = false;
      }
    } else if (method.input_type()->FindFieldByName("parent") == nullptr ||
               open == std::string::npos) {
      return request;
    }
    Message* into = request.get();
    if (const size_t dot = field.find('.'); dot != std::string::npos) {
      const auto* outer = into->GetDescriptor()->FindFieldByName(field.substr(0, dot));
      into = into->GetReflection()->MutableMessage(into, outer);
      field = field.substr(dot + 1);
    }
    into->GetReflection()->SetString(into, into->GetDescriptor()->FindFieldByName(field), name);
    return request;
  }

  grpc::Status Call(const MethodDescriptor& method, const Identity& identity) {
    grpc::GenericStub stub(channel_);
    grpc::ClientContext context;
    context.AddMetadata("tollgate-identity-bin", identity.SerializeAsString());
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    const std::string bytes = RequestOf(method)->SerializeAsString();
    grpc::Slice slice(bytes);
    grpc::ByteBuffer request(&slice, 1), response;
    std::promise<grpc::Status> done;
    stub.UnaryCall(&context, "/" + method.service()->full_name() + "/" + method.name(), {},
                   &request, &response,
                   [&done](grpc::Status status) { done.set_value(std::move(status)); });
    return done.get_future().get();
  }
};
INSTANTIATE_TEST_SUITE_P(Stores, PeopleRolesTest, ::testing::Values("sqlite", "postgres"),
                         [](const auto& info) { return info.param; });

using ::tollgate::admin::Allowed;

// What the rule allows the caller of this letter (below).
Allowed AllowedTo(const ::tollgate::admin::Rule& rule, const std::string& letter) {
  if (letter == "P") return rule.operators() ? Allowed::kYes : Allowed::kNo;
  const size_t role = std::string_view("OABDV").find(letter);
  if (role == std::string_view::npos) return Allowed::kNo;
  return ::tollgate::admin::RoleAllowed(rule, static_cast<Role>(Role::ROLE_OWNER + role));
}

TEST_P(PeopleRolesTest, EveryMethodAsEveryRole) {
  const std::map<std::string, Identity> callers = {{"O", Person(Role::ROLE_OWNER)},
                                                   {"A", Person(Role::ROLE_ADMIN)},
                                                   {"B", Person(Role::ROLE_BILLING)},
                                                   {"D", Person(Role::ROLE_DEVELOPER)},
                                                   {"V", Person(Role::ROLE_VIEWER)},
                                                   {"P", Operator()},
                                                   {"stranger", Person(Role::ROLE_UNSPECIFIED)}};
  int refused = 0, passed = 0;
  for (const MethodDescriptor* method : Methods()) {
    const std::string name = method->service()->name() + "/" + method->name();
    const auto* rule = ::tollgate::admin::RuleOf(name);
    ASSERT_NE(rule, nullptr) << name;
    const auto& http = method->options().GetExtension(google::api::http);
    const std::string path = http.get() + http.post() + http.patch() + http.delete_() + http.put();
    const bool in_workspace = path.find("workspaces/*") != std::string::npos;
    for (const auto& [letter, identity] : callers) {
      const grpc::Status status = Call(*method, identity);
      ASSERT_NE(status.error_code(), grpc::StatusCode::UNIMPLEMENTED)
          << name << " is served by no process";
      const bool everybody = rule->everyone();
      const Allowed by_letter = AllowedTo(*rule, letter);
      const bool allowed =
          everybody || (by_letter != Allowed::kNo && (letter == "P" || in_workspace));
      if (!allowed) {
        EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED)
            << name << " as " << letter << ": " << status.error_message();
        ++refused;
        continue;
      }
      ++passed;
      // A handler may refuse resources of other callers, or persons who are not operators.
      const bool narrower = everybody || by_letter == Allowed::kOwn;
      if (!narrower) {
        EXPECT_NE(ReasonOf(status), "PERMISSION_DENIED")
            << name << " as " << letter << ": " << status.error_message();
      }
      EXPECT_NE(ReasonOf(status), "STEP_UP_REQUIRED") << name << " as " << letter;
      EXPECT_NE(status.error_code(), grpc::StatusCode::UNAUTHENTICATED) << name;
    }
    if (!rule->step_up()) continue;
    // The same calls with an old sign-in, and with a token.
    for (const auto& [letter, fresh] : callers) {
      if (AllowedTo(*rule, letter) != Allowed::kYes) continue;
      Identity stale = fresh;
      stale.set_signed_in_us(NowUs() - 301'000'000);
      EXPECT_EQ(ReasonOf(Call(*method, stale)), "STEP_UP_REQUIRED") << name << " as " << letter;
      Identity token = fresh;
      token.set_by_token(true);
      token.add_scopes("owner");
      token.add_scopes("operator");
      EXPECT_EQ(ReasonOf(Call(*method, token)),
                rule->no_tokens() ? "PERMISSION_DENIED" : "STEP_UP_REQUIRED")
          << name << " as a token of " << letter;
    }
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(passed, 100);
}

// Callers who are not members cannot find out whether a workspace exists.
TEST_P(PeopleRolesTest, AForeignWorkspaceLooksLikeOneThatDoesNotExist) {
  pb::ListMembersRequest request;
  pb::ListMembersResponse response;
  const Identity stranger = Person(Role::ROLE_UNSPECIFIED);
  for (const char* workspace : {"acme", "none"}) {
    request.set_parent(std::string("workspaces/") + workspace);
    EXPECT_EQ(As(stranger, *members_, &pb::MemberService::Stub::ListMembers, request, response),
              "PERMISSION_DENIED");
  }
}

// The permissions shown to a person agree with the decisions of the services.
TEST_P(PeopleRolesTest, PermissionsAreThoseOfTheRole) {
  const auto permissions = [&](const Identity& identity, const std::string& parent) {
    pb::GetPermissionsRequest request;
    request.set_parent(parent);
    pb::Permissions response;
    EXPECT_EQ(As(identity, *users_, &pb::UserService::Stub::GetPermissions, request, response), "");
    std::map<std::string, pb::Permission> found;
    for (const auto& one : response.permissions()) found[one.method()] = one;
    return found;
  };
  const auto owner = permissions(Person(Role::ROLE_OWNER), "workspaces/acme");
  ASSERT_TRUE(owner.contains("LedgerService/UpdateCap"));
  EXPECT_TRUE(owner.at("LedgerService/UpdateCap").step_up());
  const auto viewer = permissions(Person(Role::ROLE_VIEWER), "workspaces/acme");
  EXPECT_FALSE(viewer.contains("LedgerService/UpdateCap"));
  ASSERT_TRUE(viewer.contains("MemberService/DeleteMember"));
  EXPECT_TRUE(viewer.at("MemberService/DeleteMember").own_only());
  EXPECT_FALSE(permissions(Person(Role::ROLE_OWNER), "workspaces/other")
                   .contains("LedgerService/GetBalance"));
  EXPECT_TRUE(permissions(Operator(), "").contains("UserService/CreateUser"));
  EXPECT_FALSE(permissions(Person(Role::ROLE_OWNER), "").contains("UserService/CreateUser"));
}

}  // namespace
}  // namespace tollgate::test
