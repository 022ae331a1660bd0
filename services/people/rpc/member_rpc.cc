#include <grpcpp/grpcpp.h>

#include "common/base/try.h"
#include "services/people/rpc/people_convert.h"
#include "services/people/rpc/people_rpc.h"
#include "tollgate/admin/v1/members.grpc.pb.h"

namespace tollgate::people {
namespace {

namespace pb = tollgate::admin::v1;
using admin::Caller;
using admin::Parts;
using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

constexpr size_t kMaxQuery = 100;

std::string ResolveMe(const std::string& user, const Caller& caller) {
  return user == "me" ? caller.user_id : user;
}

class MemberRpc : public pb::MemberService::CallbackService {
 public:
  explicit MemberRpc(const PeopleSlot& people) : people_{people} {}

  ServerUnaryReactor* GetMember(CallbackServerContext* context, const pb::GetMemberRequest* request,
                                pb::Member* response) override {
    return admin::Handle(
        context, request, response, people_,
        [=](People& people, const Caller& caller, const Parts& name) -> AdminResult<void> {
          TRY(auto member, people.store().GetMember(name[0], ResolveMe(name[1], caller)));
          Fill(member, name[0], *response);
          return {};
        });
  }
  ServerUnaryReactor* ListMembers(CallbackServerContext* context,
                                  const pb::ListMembersRequest* request,
                                  pb::ListMembersResponse* response) override {
    return admin::Handle(
        context, request, response, people_,
        [=](People& people, const Caller& caller, const Parts& name) -> AdminResult<void> {
          if (request->query().size() > kMaxQuery) {
            return admin::InvalidField("query", "a query has at most 100 bytes");
          }
          TRY(auto page, admin::PageOfList(*request, caller));
          TRY(auto members,
              people.store().ListMembers(name[0], request->query(), page.size + 1, page.position));
          admin::FillPage(
              page, members, *response,
              [&](const Member& member) { Fill(member, name[0], *response->add_members()); },
              [](const Member& member) { return member.person.user_id; });
          return {};
        });
  }
  ServerUnaryReactor* UpdateMember(CallbackServerContext* context,
                                   const pb::UpdateMemberRequest* request,
                                   pb::Member* response) override {
    return admin::Handle(
        context, request, response, people_,
        [=](People& people, const Caller& caller, const Parts& name) -> AdminResult<void> {
          for (const std::string& path : request->update_mask().paths()) {
            if (path != "role") {
              return admin::InvalidField("update_mask", "the only field to update is role");
            }
          }
          TRY(auto role, ParseRole(request->member().role(), "member.role"));
          if (role == Role::ROLE_OWNER) {
            TRY(admin::RequireStepUp(caller));
          }
          TRY(auto member,
              people.store().SetRole(ActorOf(caller), name[0], ResolveMe(name[1], caller), role));
          Fill(member, name[0], *response);
          return {};
        });
  }
  ServerUnaryReactor* DeleteMember(CallbackServerContext* context,
                                   const pb::DeleteMemberRequest* request,
                                   pb::DeleteMemberResponse* response) override {
    return admin::Handle(
        context, request, response, people_,
        [=](People& people, const Caller& caller, const Parts& name) -> AdminResult<void> {
          const std::string user = ResolveMe(name[1], caller);
          const bool oneself = user == caller.user_id && !caller.user_id.empty();
          if (caller.own_only && !oneself) {
            return admin::PermissionDenied("PERMISSION_DENIED",
                                           "you may leave the workspace, not remove others");
          }
          return people.store().RemoveMember(
              ActorOf(caller), name[0], user,
              oneself ? std::nullopt : std::optional<Role>(admin::ActingRole(caller)));
        });
  }

 private:
  const OnPeople people_;
};

class InvitationRpc : public pb::InvitationService::CallbackService {
 public:
  explicit InvitationRpc(const PeopleSlot& people) : people_{people} {}

  ServerUnaryReactor* CreateInvitation(CallbackServerContext* context,
                                       const pb::CreateInvitationRequest* request,
                                       pb::CreateInvitationResponse* response) override {
    return admin::Handle(
        context, request, response, people_,
        [=](People& people, const Caller& caller, const Parts& name) -> AdminResult<void> {
          // The person vouches for what their token creates.
          Invitation invitation{.workspace = name[0],
                                .actor = caller.user_id.empty() ? "" : "user:" + caller.user_id};
          TRY(auto email, NormalEmail(request->invitation().email(), "invitation.email"));
          invitation.email = email;
          TRY(auto role, ParseRole(request->invitation().role(), "invitation.role"));
          invitation.role = role;
          // Operators of the platform invite a workspace's first owner.
          const Role inviter =
              caller.platform_operator ? Role::ROLE_OWNER : admin::ActingRole(caller);
          if (!MayManage(inviter, role)) {
            return admin::PermissionDenied("PERMISSION_DENIED",
                                           "only an owner may invite owners and admins");
          }
          if (role == Role::ROLE_OWNER) {
            TRY(admin::RequireStepUp(caller));
          }
          TRY(auto made,
              people.store().CreateInvitation(ActorOf(caller), invitation, request->request_id()));
          Fill(made.invitation, *response->mutable_invitation());
          if (!made.token.empty()) {
            response->set_accept_path("/session/v1/invitation?token=" + made.token);
          }
          response->set_mailed(made.mailed);
          return {};
        });
  }
  ServerUnaryReactor* ListInvitations(CallbackServerContext* context,
                                      const pb::ListInvitationsRequest* request,
                                      pb::ListInvitationsResponse* response) override {
    return admin::Handle(
        context, request, response, people_,
        [=](People& people, const Caller& caller, const Parts& name) -> AdminResult<void> {
          TRY(auto page, admin::PageOfList(*request, caller));
          TRY(auto found, people.store().ListInvitations(name[0], page.size + 1, page.position));
          admin::FillPage(
              page, found, *response,
              [&](const Invitation& one) { Fill(one, *response->add_invitations()); },
              [](const Invitation& one) { return one.id; });
          return {};
        });
  }
  ServerUnaryReactor* DeleteInvitation(CallbackServerContext* context,
                                       const pb::DeleteInvitationRequest* request,
                                       pb::DeleteInvitationResponse* response) override {
    return admin::Handle(
        context, request, response, people_,
        [=](People& people, const Caller& caller, const Parts& name) -> AdminResult<void> {
          return people.store().DeleteInvitation(ActorOf(caller), name[0], name[1]);
        });
  }
  ServerUnaryReactor* AcceptInvitation(CallbackServerContext* context,
                                       const pb::AcceptInvitationRequest* request,
                                       pb::Member* response) override {
    return admin::Handle(
        context, request, response, people_,
        [=](People& people, const Caller& caller) -> AdminResult<void> {
          if (request->token().empty()) {
            return admin::InvalidField("token", "the token of the invitation is required");
          }
          std::string workspace;
          TRY(auto member, people.store().AcceptInvitation(ActorOf(caller), caller.user_id,
                                                           request->token(), &workspace));
          Fill(member, workspace, *response);
          return {};
        });
  }

 private:
  const OnPeople people_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeMemberRpc(const PeopleSlot& people) {
  return std::make_unique<MemberRpc>(people);
}
std::unique_ptr<grpc::Service> MakeInvitationRpc(const PeopleSlot& people) {
  return std::make_unique<InvitationRpc>(people);
}

}  // namespace tollgate::people
