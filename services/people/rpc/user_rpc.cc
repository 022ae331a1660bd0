#include <grpcpp/grpcpp.h>

#include "common/base/try.h"
#include "services/people/rpc/people_convert.h"
#include "services/people/rpc/people_rpc.h"
#include "tollgate/admin/v1/users.grpc.pb.h"

namespace tollgate::people {
namespace {

namespace pb = tollgate::admin::v1;
using admin::Caller;
using admin::Parts;
using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

constexpr int64_t kMaxTokenUs = int64_t{366} * 24 * 3600 * 1'000'000;

bool IsOperator(const Caller& caller) { return caller.installation || caller.platform_operator; }

// The user of "users/ID" or "users/me".
AdminResult<std::string> UserOf(const Parts& name, const Caller& caller) {
  if (name.front() != "me") return name.front();
  if (caller.user_id.empty()) {
    return admin::NotFound("the caller is not a person: users/me is for people");
  }
  return caller.user_id;
}

AdminResult<std::string> Me(const Parts& parent, const Caller& caller) {
  auto user = UserOf(parent, caller);
  if (!user || *user == caller.user_id) return user;
  return admin::PermissionDenied("PERMISSION_DENIED", "only users/me");
}

class UserRpc : public pb::UserService::CallbackService {
 public:
  explicit UserRpc(const PeopleSlot& people) : people_{people} {}

  ServerUnaryReactor* GetUser(CallbackServerContext* context, const pb::GetUserRequest* request,
                              pb::User* response) override {
    return admin::Handle(
        context, request, response, people_,
        [=](People& people, const Caller& caller, const Parts& name) -> AdminResult<void> {
          TRY(auto user, UserOf(name, caller));
          if (user != caller.user_id && !IsOperator(caller)) return NotYours();
          TRY(auto view, people.store().GetPerson(user));
          Fill(view, *response);
          return {};
        });
  }

  ServerUnaryReactor* UpdateUser(CallbackServerContext* context,
                                 const pb::UpdateUserRequest* request,
                                 pb::User* response) override {
    return admin::Handle(
        context, request, response, people_,
        [=](People& people, const Caller& caller, const Parts& name) -> AdminResult<void> {
          TRY(auto user, UserOf(name, caller));
          TRY(auto change, ChangeOf(*request));
          const bool me = user == caller.user_id;
          if (!me || change.state || change.platform_operator) {
            if (!IsOperator(caller)) return NotYours();
            TRY(admin::RequireStepUp(caller));
          }
          if (me && (change.state || change.platform_operator)) {
            return admin::Precondition(
                "SAME_PERSON",
                "you cannot change your own state or operator role; ask another operator");
          }
          TRY(auto view, people.store().ChangePerson(ActorOf(caller), user, change));
          Fill(view, *response);
          return {};
        });
  }

  ServerUnaryReactor* ListUsers(CallbackServerContext* context, const pb::ListUsersRequest* request,
                                pb::ListUsersResponse* response) override {
    return admin::Handle(
        context, request, response, people_,
        [=](People& people, const Caller& caller) -> AdminResult<void> {
          TRY(auto page, admin::PageOfList(*request, caller));
          TRY(auto views, people.store().ListPersons(page.size + 1, page.position));
          admin::FillPage(
              page, views, *response, [&](const auto& view) { Fill(view, *response->add_users()); },
              [](const auto& view) { return view.person.user_id; });
          return {};
        });
  }

  ServerUnaryReactor* CreateUser(CallbackServerContext* context,
                                 const pb::CreateUserRequest* request,
                                 pb::CreateUserResponse* response) override {
    return admin::Handle(
        context, request, response, people_,
        [=](People& people, const Caller& caller) -> AdminResult<void> {
          TRY(auto made,
              people.store().CreatePerson(ActorOf(caller),
                                          {.email = request->user().email(),
                                           .display_name = request->user().display_name(),
                                           .platform_operator = request->user().platform_operator(),
                                           .request_id = request->request_id()}));
          Fill(made.view, *response->mutable_user());
          if (!made.link_token.empty()) {
            response->set_sign_in_path(LinkPath(made.link_token));
          }
          return {};
        });
  }

  ServerUnaryReactor* CreateSignInLink(CallbackServerContext* context,
                                       const pb::CreateSignInLinkRequest* request,
                                       pb::CreateSignInLinkResponse* response) override {
    return admin::Handle(
        context, request, response, people_,
        [=](People& people, const Caller& caller, const Parts& name) -> AdminResult<void> {
          TRY(auto user, UserOf(name, caller));
          TRY(auto link, people.store().CreateLink(ActorOf(caller), user, request->request_id()));
          if (!link.token.empty()) response->set_sign_in_path(LinkPath(link.token));
          SetTime(link.expires_us, *response->mutable_expire_time());
          return {};
        });
  }

  ServerUnaryReactor* ResetTotp(CallbackServerContext* context, const pb::ResetTotpRequest* request,
                                pb::User* response) override {
    return admin::Handle(
        context, request, response, people_,
        [=](People& people, const Caller& caller, const Parts& name) -> AdminResult<void> {
          TRY(auto user, UserOf(name, caller));
          if (user == caller.user_id) {
            return admin::Precondition(
                "SAME_PERSON", "you cannot reset your own second step; ask another operator");
          }
          TRY(auto view, people.store().ResetTotp(ActorOf(caller), user));
          Fill(view, *response);
          return {};
        });
  }

  ServerUnaryReactor* GetPermissions(CallbackServerContext* context,
                                     const pb::GetPermissionsRequest* request,
                                     pb::Permissions* response) override {
    return admin::Handle(context, request, response, people_,
                         [=](People&, const Caller& caller) -> AdminResult<void> {
                           std::string workspace;
                           if (!request->parent().empty()) {
                             TRY(auto parts,
                                 admin::NameParts("workspaces/*", request->parent(), "parent"));
                             workspace = parts.front();
                           }
                           for (const auto& [method, rule] : admin::AllRules()) {
                             // Only support sessions distinguish reads from writes.
                             const bool reads = method.find("/Get") != std::string::npos ||
                                                method.find("/List") != std::string::npos;
                             Caller stepped_up = caller;
                             stepped_up.fresh = !caller.by_token;
                             auto allowed = admin::Check(stepped_up, &rule, workspace, reads);
                             if (!allowed) continue;
                             auto* added = response->add_permissions();
                             added->set_method(method);
                             added->set_own_only(allowed->own_only);
                             added->set_step_up(rule.step_up());
                           }
                           return {};
                         });
  }

  ServerUnaryReactor* ListSessions(CallbackServerContext* context,
                                   const pb::ListSessionsRequest* request,
                                   pb::ListSessionsResponse* response) override {
    return admin::Handle(
        context, request, response, people_,
        [=](People& people, const Caller& caller, const Parts& name) -> AdminResult<void> {
          TRY(auto user, Me(name, caller));
          TRY(auto sessions, people.store().ListSessions(user));
          for (const Session& session : sessions) {
            Fill(session, caller.session_id, *response->add_sessions());
          }
          return {};
        });
  }
  ServerUnaryReactor* DeleteSession(CallbackServerContext* context,
                                    const pb::DeleteSessionRequest* request,
                                    pb::DeleteSessionResponse* response) override {
    return admin::Handle(
        context, request, response, people_,
        [=](People& people, const Caller& caller, const Parts& name) -> AdminResult<void> {
          TRY(auto parts, OwnPart(name, caller));
          return people.store().DeleteSession(ActorOf(caller), caller.user_id, parts);
        });
  }
  ServerUnaryReactor* RevokeOtherSessions(CallbackServerContext* context,
                                          const pb::RevokeOtherSessionsRequest* request,
                                          pb::RevokeOtherSessionsResponse* response) override {
    return admin::Handle(
        context, request, response, people_,
        [=](People& people, const Caller& caller, const Parts& name) -> AdminResult<void> {
          TRY(auto user, Me(name, caller));
          TRY(auto count,
              people.store().RevokeOtherSessions(ActorOf(caller), user, caller.session_id));
          response->set_revoked_count(static_cast<int32_t>(count));
          return {};
        });
  }

  ServerUnaryReactor* CreateToken(CallbackServerContext* context,
                                  const pb::CreateTokenRequest* request,
                                  pb::CreateTokenResponse* response) override {
    return admin::Handle(
        context, request, response, people_,
        [=](People& people, const Caller& caller, const Parts& name) -> AdminResult<void> {
          TRY(auto user, Me(name, caller));
          TRY(auto token, TokenOf(request->token(), caller, people.store().database().NowUs()));
          token.user_id = user;
          TRY(auto made, people.store().CreateToken(ActorOf(caller), token, request->request_id()));
          Fill(made.token, *response->mutable_token());
          response->set_secret(made.secret);
          response->set_secret_shown(made.secret.empty());
          return {};
        });
  }
  ServerUnaryReactor* ListTokens(CallbackServerContext* context,
                                 const pb::ListTokensRequest* request,
                                 pb::ListTokensResponse* response) override {
    return admin::Handle(
        context, request, response, people_,
        [=](People& people, const Caller& caller, const Parts& name) -> AdminResult<void> {
          TRY(auto user, Me(name, caller));
          TRY(auto tokens, people.store().ListTokens(user));
          for (const AccessToken& token : tokens) Fill(token, *response->add_tokens());
          return {};
        });
  }
  ServerUnaryReactor* DeleteToken(CallbackServerContext* context,
                                  const pb::DeleteTokenRequest* request,
                                  pb::DeleteTokenResponse* response) override {
    return admin::Handle(
        context, request, response, people_,
        [=](People& people, const Caller& caller, const Parts& name) -> AdminResult<void> {
          TRY(auto id, OwnPart(name, caller));
          return people.store().DeleteToken(ActorOf(caller), caller.user_id, id);
        });
  }

 private:
  static Fail<admin::Failure> NotYours() {
    return admin::PermissionDenied("PERMISSION_DENIED", "this is for operators of the platform");
  }
  static std::string LinkPath(const std::string& token) {
    return "/session/v1/link?token=" + token;
  }

  // Last part of a resource name that belongs to the caller.
  static AdminResult<std::string> OwnPart(const Parts& name, const Caller& caller) {
    if (caller.user_id.empty() || (name.front() != "me" && name.front() != caller.user_id)) {
      return admin::PermissionDenied("PERMISSION_DENIED", "only your own, as users/me");
    }
    return name.back();
  }

  static AdminResult<PeopleStore::PersonChange> ChangeOf(const pb::UpdateUserRequest& request) {
    const pb::User& user = request.user();
    std::vector<std::string> paths(request.update_mask().paths().begin(),
                                   request.update_mask().paths().end());
    if (paths.empty()) {
      if (!user.display_name().empty()) paths.emplace_back("display_name");
      if (user.state() != pb::USER_STATE_UNSPECIFIED) paths.emplace_back("state");
      if (user.platform_operator()) paths.emplace_back("platform_operator");
    }
    PeopleStore::PersonChange change;
    for (const std::string& path : paths) {
      if (path == "display_name" || path == "displayName") {
        TRY(CheckDisplayName(user.display_name(), "user.display_name"));
        change.display_name = user.display_name();
      } else if (path == "state") {
        if (user.state() != pb::USER_STATE_ACTIVE && user.state() != pb::USER_STATE_DISABLED) {
          return admin::InvalidField("user.state", "a state is ACTIVE or DISABLED");
        }
        change.state =
            user.state() == pb::USER_STATE_ACTIVE ? PersonState::kActive : PersonState::kDisabled;
      } else if (path == "platform_operator" || path == "platformOperator") {
        change.platform_operator = user.platform_operator();
      } else {
        return admin::InvalidField("update_mask", "\"" + path + "\" cannot be updated");
      }
    }
    return change;
  }

  static AdminResult<AccessToken> TokenOf(const pb::AccessToken& from, const Caller& caller,
                                          int64_t now_us) {
    AccessToken token;
    token.name = from.display_name();
    if (token.name.empty()) {
      return admin::InvalidField("token.display_name", "a name is required");
    }
    TRY(CheckDisplayName(token.name, "token.display_name"));
    token.scopes.assign(from.scopes().begin(), from.scopes().end());
    TRY(CheckScopes(token.scopes, caller.roles, caller.platform_operator));
    token.expires_us = from.has_expire_time() ? UsOf(from.expire_time()) : 0;
    if (token.expires_us <= now_us || token.expires_us > now_us + kMaxTokenUs) {
      return admin::InvalidField("token.expire_time", "a time within the coming year is required");
    }
    return token;
  }

  const OnPeople people_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeUserRpc(const PeopleSlot& people) {
  return std::make_unique<UserRpc>(people);
}

}  // namespace tollgate::people
