#include <CLI/CLI.hpp>

#include <cstdio>
#include <memory>
#include <string>

#include "services/cli/admin_cells.h"
#include "services/cli/commands.h"
#include "services/cli/invocation.h"

namespace tollgate::cli {
namespace {

namespace v1 = tollgate::admin::v1;

struct UserNames {
  std::string user;  // e-mail address or id
  std::string name;
  std::string workspace;
  std::string role = "owner";
  bool platform_operator = false;
};

void AddRow(const v1::User& user, Table& table) {
  std::vector<std::string> memberships;
  for (const auto& one : user.memberships()) {
    memberships.push_back(LastPart(one.workspace()) + ":" + one.role());
  }
  table.Add({Text(LastPart(user.name())), Text(user.email()), Text(user.display_name()),
             Text(EnumText(v1::UserState_Name(user.state()), "USER_STATE_")),
             Bool(user.platform_operator()), Bool(user.totp_enabled()), List(memberships, "none"),
             Time(user.create_time())});
}
Table UserTable() {
  return Table({{"user", "USER"},
                {"email", "E-MAIL"},
                {"display_name", "NAME"},
                {"state", "STATE"},
                {"platform_operator", "OPERATOR"},
                {"totp_enabled", "TOTP"},
                {"memberships", "WORKSPACES"},
                {"created_at", "CREATED (UTC)"}});
}

// Calls `each` for every user until it returns false. Returns false if a call failed.
bool EachUser(Invocation& invocation, v1::UserService::Stub& stub,
              const std::function<bool(const v1::User&)>& each) {
  v1::ListUsersRequest request;
  request.set_page_size(200);
  do {
    v1::ListUsersResponse response;
    if (!invocation.Call(
            "auth", [&](auto& context) { return stub.ListUsers(&context, request, &response); })) {
      return false;
    }
    for (const v1::User& user : response.users()) {
      if (!each(user)) return true;
    }
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty());
  return true;
}

// "users/ID" for an e-mail address or an id; empty after reporting a failure.
std::string NameOf(Invocation& invocation, v1::UserService::Stub& stub, const std::string& user) {
  if (user.find('@') == std::string::npos) return "users/" + user;
  std::string name;
  const bool read = EachUser(invocation, stub, [&](const v1::User& one) {
    if (one.email() == user) name = one.name();
    return name.empty();
  });
  if (read && name.empty()) {
    invocation.ReportError("not_found", "there is no user with the address " + user);
  }
  return name;
}

void AddListUsers(CLI::App& group, Invocation& invocation, bool operators) {
  CLI::App& list = *group.add_subcommand(
      "list", operators ? "Operators of the platform" : "All people, newest first");
  list.callback([&invocation, operators] {
    const auto stub = invocation.Users();
    if (!stub) return;
    Table table = UserTable();
    if (EachUser(invocation, *stub, [&](const v1::User& user) {
          if (!operators || user.platform_operator()) AddRow(user, table);
          return true;
        })) {
      invocation.ShowList(table, operators ? "operators" : "users", "Nobody yet.");
    }
  });
}

void ShowLink(Invocation& invocation, const std::string& path) {
  Table table({{"path", "PATH AT THE DASHBOARD"}});
  table.Add({Text(path)});
  invocation.ShowRecord(table);
}

void AddCreateUser(CLI::App& group, Invocation& invocation, bool operators) {
  auto names = std::make_shared<UserNames>();
  names->platform_operator = operators;
  CLI::App& create = *group.add_subcommand(
      "create", "Make an account; prints a link that signs in once, within a day");
  create.add_option("email", names->user, "E-mail address")->required();
  create.add_option("--name", names->name, "Name");
  create.callback([&invocation, names] {
    const auto stub = invocation.Users();
    if (!stub) return;
    v1::CreateUserRequest request;
    request.mutable_user()->set_email(names->user);
    request.mutable_user()->set_display_name(names->name);
    request.mutable_user()->set_platform_operator(names->platform_operator);
    request.set_request_id(invocation.RequestId());
    v1::CreateUserResponse response;
    if (invocation.Call("auth", [&](auto& context) {
          return stub->CreateUser(&context, request, &response);
        })) {
      ShowLink(invocation, response.sign_in_path());
    }
  });
}

void AddLink(CLI::App& group, Invocation& invocation) {
  auto names = std::make_shared<UserNames>();
  CLI::App& link = *group.add_subcommand(
      "link", "A link that signs the person in once, within a day: after a lost password");
  link.add_option("user", names->user, "E-mail address or id")->required();
  link.callback([&invocation, names] {
    const auto stub = invocation.Users();
    if (!stub) return;
    v1::CreateSignInLinkRequest request;
    request.set_name(NameOf(invocation, *stub, names->user));
    if (request.name().empty()) return;
    request.set_request_id(invocation.RequestId());
    v1::CreateSignInLinkResponse response;
    if (invocation.Call("auth", [&](auto& context) {
          return stub->CreateSignInLink(&context, request, &response);
        })) {
      ShowLink(invocation, response.sign_in_path());
    }
  });
}

void AddInvite(CLI::App& group, Invocation& invocation) {
  auto names = std::make_shared<UserNames>();
  CLI::App& invite = *group.add_subcommand(
      "invite",
      "Invite a person to a workspace; mails or prints a link that works once, for seven days");
  invite.add_option("email", names->user, "E-mail address")->required();
  invite.add_option("-w,--workspace", names->workspace, "Workspace")->required();
  invite.add_option("--role", names->role, "owner, admin, billing, developer or viewer")
      ->capture_default_str();
  invite.callback([&invocation, names] {
    const auto stub = invocation.Invitations();
    if (!stub) return;
    v1::CreateInvitationRequest request;
    request.set_parent("workspaces/" + names->workspace);
    request.mutable_invitation()->set_email(names->user);
    request.mutable_invitation()->set_role(names->role);
    request.set_request_id(invocation.RequestId());
    v1::CreateInvitationResponse response;
    if (invocation.Call("auth", [&](auto& context) {
          return stub->CreateInvitation(&context, request, &response);
        })) {
      if (response.mailed()) {
        Table table({{"mailed_to", "MAILED TO"}});
        table.Add({Text(response.invitation().email())});
        return invocation.ShowRecord(table);
      }
      ShowLink(invocation, response.accept_path());
    }
  });
}

void AddState(CLI::App& group, Invocation& invocation, const char* verb, const char* help,
              v1::UserState state) {
  auto names = std::make_shared<UserNames>();
  CLI::App& command = *group.add_subcommand(verb, help);
  command.add_option("user", names->user, "E-mail address or id")->required();
  command.callback([&invocation, names, state] {
    const auto stub = invocation.Users();
    if (!stub) return;
    v1::UpdateUserRequest request;
    request.mutable_user()->set_name(NameOf(invocation, *stub, names->user));
    if (request.user().name().empty()) return;
    request.mutable_user()->set_state(state);
    request.mutable_update_mask()->add_paths("state");
    v1::User user;
    if (invocation.Call(
            "auth", [&](auto& context) { return stub->UpdateUser(&context, request, &user); })) {
      Table table = UserTable();
      AddRow(user, table);
      invocation.ShowRecord(table);
    }
  });
}

void AddResetTotp(CLI::App& group, Invocation& invocation) {
  auto names = std::make_shared<UserNames>();
  CLI::App& reset = *group.add_subcommand(
      "reset-totp", "Switch off the second step of a person who has lost it; ends their sessions");
  reset.add_option("user", names->user, "E-mail address or id")->required();
  reset.callback([&invocation, names] {
    const auto stub = invocation.Users();
    if (!stub) return;
    v1::ResetTotpRequest request;
    request.set_name(NameOf(invocation, *stub, names->user));
    if (request.name().empty()) return;
    v1::User user;
    if (invocation.Call("auth",
                        [&](auto& context) { return stub->ResetTotp(&context, request, &user); })) {
      Table table = UserTable();
      AddRow(user, table);
      invocation.ShowRecord(table);
    }
  });
}

}  // namespace

void AddUserCommands(CLI::App& app, Invocation& invocation) {
  CLI::App& user = *app.add_subcommand("user", "People and their accounts");
  user.require_subcommand(1);
  AddListUsers(user, invocation, false);
  AddCreateUser(user, invocation, false);
  AddInvite(user, invocation);
  AddLink(user, invocation);
  AddResetTotp(user, invocation);
  AddState(user, invocation, "disable", "End all sessions and tokens, and refuse new ones",
           v1::USER_STATE_DISABLED);
  AddState(user, invocation, "enable", "Let a disabled person in again", v1::USER_STATE_ACTIVE);
  CLI::App& operators = *app.add_subcommand("operator", "People who work for the platform");
  operators.require_subcommand(1);
  AddListUsers(operators, invocation, true);
  AddCreateUser(operators, invocation, true);
}

}  // namespace tollgate::cli
