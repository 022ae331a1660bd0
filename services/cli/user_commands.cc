#include <string>
#include <vector>

#include "services/cli/admin_cells.h"
#include "services/cli/commands.h"
#include "services/cli/invocation.h"
#include "services/cli/pages.h"
#include "tollgate/admin/v1/members.pb.h"
#include "tollgate/admin/v1/users.pb.h"

namespace tollgate::cli {
namespace {

namespace pb = tollgate::admin::v1;

Cell MembershipsCell(const google::protobuf::Message& message) {
  std::vector<std::string> memberships;
  for (const auto& one : static_cast<const pb::User&>(message).memberships()) {
    memberships.push_back(LastPart(one.workspace()) + ":" + one.role());
  }
  return List(memberships, "none");
}

constexpr char kUserColumns[] =
    "user=name.id USER | email E-MAIL | display_name NAME | state STATE | "
    "platform_operator OPERATOR | totp_enabled TOTP | memberships WORKSPACES | "
    "created_at=create_time CREATED (UTC)";
constexpr char kSignInLink[] = "path=sign_in_path PATH AT THE DASHBOARD";

// Replaces the argument `user`, an e-mail address or an id, by the user's resource name.
bool FindUser(Invocation& invocation, Arguments& arguments) {
  const std::string user = arguments.Get("user");
  std::string name = user.find('@') == std::string::npos ? "users/" + user : "";
  if (name.empty() &&
      !EachPage<pb::ListUsersResponse>(invocation, "UserService.ListUsers", pb::ListUsersRequest(),
                                       [&](const pb::ListUsersResponse& page) {
                                         for (const pb::User& one : page.users()) {
                                           if (name.empty() && one.email() == user)
                                             name = one.name();
                                         }
                                         return name.empty();
                                       })) {
    return false;
  }
  if (name.empty()) {
    invocation.ReportError("not_found", "there is no user with the address " + user);
  }
  arguments.Set("user", {name});
  return !name.empty();
}

void ShowInvitation(Invocation& invocation, const Arguments&,
                    const google::protobuf::Message& message) {
  const auto& response = static_cast<const pb::CreateInvitationResponse&>(message);
  Table table({response.mailed() ? Column{"mailed_to", "MAILED TO"}
                                 : Column{"path", "PATH AT THE DASHBOARD"}});
  table.Add({Text(response.mailed() ? response.invitation().email() : response.accept_path())});
  invocation.ShowRecord(table);
}

Command ListUsers(const char* words, const char* help, const char* member) {
  return Command(words, help, "UserService.ListUsers")
      .Lists("users", "Nobody yet.", kUserColumns, member)
      .WithCell("memberships", MembershipsCell);
}

Command CreateUser(const char* words, const char* is_operator) {
  return Command(words, "Make an account; prints a link that signs in once, within a day",
                 "UserService.CreateUser",
                 {Flag("email", "E-mail address", "user.email").Required(),
                  Flag("--name", "Name", "user.display_name")})
      .Sets("user.platform_operator", is_operator)
      .Shows(kSignInLink);
}

// A change of one person's account. name: the field of the request with the person's name.
Command ChangeUser(const char* words, const char* help, const char* method,
                   const char* name = "name") {
  return Command(words, help, method, {Flag("user", "E-mail address or id").Required()})
      .Before(FindUser)
      .Sets(name, "{user}")
      .Shows(kUserColumns)
      .WithCell("memberships", MembershipsCell);
}

}  // namespace

std::vector<Command> UserCommands() {
  return {
      Command("user", "People and their accounts"),
      ListUsers("user list", "All people, newest first", "users"),
      CreateUser("user create", "false"),
      Command(
          "user invite",
          "Invite a person to a workspace; mails or prints a link that works once, for seven days",
          "InvitationService.CreateInvitation",
          {Flag("email", "E-mail address", "invitation.email").Required(), ParentFlag(),
           Flag("--role", "owner, admin, billing, developer or viewer", "invitation.role")
               .Default("owner")})
          .Then(ShowInvitation),
      ChangeUser("user link",
                 "A link that signs the person in once, within a day: after a lost password",
                 "UserService.CreateSignInLink")
          .Shows(kSignInLink),
      ChangeUser("user reset-totp",
                 "Switch off the second step of a person who has lost it; ends their sessions",
                 "UserService.ResetTotp"),
      ChangeUser("user disable", "End all sessions and tokens, and refuse new ones",
                 "UserService.UpdateUser", "user.name")
          .Sets("user.state", "disabled")
          .Sets("update_mask.paths", "state"),
      ChangeUser("user enable", "Let a disabled person in again", "UserService.UpdateUser",
                 "user.name")
          .Sets("user.state", "active")
          .Sets("update_mask.paths", "state"),
      Command("operator", "People who work for the platform"),
      ListUsers("operator list", "Operators of the platform", "operators")
          .Only("platform_operator"),
      CreateUser("operator create", "true"),
  };
}

}  // namespace tollgate::cli
