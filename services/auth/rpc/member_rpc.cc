#include <grpcpp/grpcpp.h>

#include "common/admin/access.h"
#include "common/admin/paging.h"
#include "common/admin/values.h"
#include "services/auth/rpc/people_convert.h"
#include "services/auth/rpc/people_rpc.h"
#include "tollgate/admin/v1/members.grpc.pb.h"

namespace tollgate::auth {
namespace {

namespace pb = tollgate::admin::v1;
using admin::Caller;
using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

constexpr char kWorkspace[] = "workspaces/*";
constexpr char kMember[] = "workspaces/*/members/*";
constexpr char kInvitation[] = "workspaces/*/invitations/*";
constexpr size_t kMaxQuery = 100;

std::string ResolveMe(const std::string& user, const Caller& caller) {
  return user == "me" ? caller.user_id : user;
}

ServerUnaryReactor* Serve(const PeopleSlot& people, CallbackServerContext* context,
                          const google::protobuf::Message& request,
                          std::function<AdminResult<void>(PeopleStore&, const Caller&)> function) {
  return AdmitOnPeople(people, context, request,
                       [function = std::move(function)](People& running, const Caller& caller) {
                         return function(running.store(), caller);
                       });
}

struct Page {
  int size = 0;
  std::string binding;
  std::string after;
};
template <typename Request>
AdminResult<Page> PageOf(const Request& request, const Caller& caller, const std::string& method,
                         const std::string& query) {
  Page page;
  auto size = admin::PageSize(request.page_size());
  if (!size) return Fail{size.error()};
  page.size = *size;
  page.binding = method + "\n" + caller.actor + "\n" + request.parent() + "\n" + query;
  auto after = admin::DecodePageToken(page.binding, request.page_token());
  if (!after) return Fail{after.error()};
  page.after = *std::move(after);
  return page;
}

class MemberRpc : public pb::MemberService::CallbackService {
 public:
  explicit MemberRpc(const PeopleSlot& people) : people_(people) {}

  ServerUnaryReactor* GetMember(CallbackServerContext* context, const pb::GetMemberRequest* request,
                                pb::Member* response) override {
    return Serve(people_, context, *request,
                 [=](PeopleStore& store, const Caller& caller) -> AdminResult<void> {
                   auto parts = admin::NameParts(kMember, request->name(), "name");
                   if (!parts) return Fail{parts.error()};
                   auto member = store.GetMember((*parts)[0], ResolveMe((*parts)[1], caller));
                   if (!member) return Fail{member.error()};
                   Fill(*member, (*parts)[0], *response);
                   return {};
                 });
  }
  ServerUnaryReactor* ListMembers(CallbackServerContext* context,
                                  const pb::ListMembersRequest* request,
                                  pb::ListMembersResponse* response) override {
    return Serve(people_, context, *request,
                 [=](PeopleStore& store, const Caller& caller) -> AdminResult<void> {
                   auto parts = admin::NameParts(kWorkspace, request->parent(), "parent");
                   if (!parts) return Fail{parts.error()};
                   if (request->query().size() > kMaxQuery) {
                     return admin::InvalidField("query", "a query has at most 100 bytes");
                   }
                   auto page = PageOf(*request, caller, "ListMembers", request->query());
                   if (!page) return Fail{page.error()};
                   auto members = store.ListMembers(parts->front(), request->query(),
                                                    page->size + 1, page->after);
                   if (!members) return Fail{members.error()};
                   const bool more = members->size() > static_cast<size_t>(page->size);
                   if (more) members->pop_back();
                   for (const Member& member : *members) {
                     Fill(member, parts->front(), *response->add_members());
                   }
                   if (more) {
                     response->set_next_page_token(
                         admin::EncodePageToken(page->binding, members->back().person.user_id));
                   }
                   return {};
                 });
  }
  ServerUnaryReactor* UpdateMember(CallbackServerContext* context,
                                   const pb::UpdateMemberRequest* request,
                                   pb::Member* response) override {
    return Serve(
        people_, context, *request,
        [=](PeopleStore& store, const Caller& caller) -> AdminResult<void> {
          auto parts = admin::NameParts(kMember, request->member().name(), "member.name");
          if (!parts) return Fail{parts.error()};
          for (const std::string& path : request->update_mask().paths()) {
            if (path != "role") {
              return admin::InvalidField("update_mask", "the only field to update is role");
            }
          }
          auto role = ParseRole(request->member().role(), "member.role");
          if (!role) return Fail{role.error()};
          if (*role == Role::ROLE_OWNER) {
            if (auto fresh = admin::RequireStepUp(caller); !fresh) return fresh;
          }
          auto member =
              store.SetRole(ActorOf(caller), (*parts)[0], ResolveMe((*parts)[1], caller), *role);
          if (!member) return Fail{member.error()};
          Fill(*member, (*parts)[0], *response);
          return {};
        });
  }
  ServerUnaryReactor* DeleteMember(CallbackServerContext* context,
                                   const pb::DeleteMemberRequest* request,
                                   pb::DeleteMemberResponse*) override {
    return Serve(people_, context, *request,
                 [=](PeopleStore& store, const Caller& caller) -> AdminResult<void> {
                   auto parts = admin::NameParts(kMember, request->name(), "name");
                   if (!parts) return Fail{parts.error()};
                   const std::string user = ResolveMe((*parts)[1], caller);
                   const bool oneself = user == caller.user_id && !caller.user_id.empty();
                   if (caller.own_only && !oneself) {
                     return admin::PermissionDenied(
                         "PERMISSION_DENIED", "you may leave the workspace, not remove others");
                   }
                   return store.RemoveMember(
                       ActorOf(caller), (*parts)[0], user,
                       oneself ? std::nullopt : std::optional<Role>(admin::ActingRole(caller)));
                 });
  }

 private:
  const PeopleSlot& people_;
};

class InvitationRpc : public pb::InvitationService::CallbackService {
 public:
  explicit InvitationRpc(const PeopleSlot& people) : people_(people) {}

  ServerUnaryReactor* CreateInvitation(CallbackServerContext* context,
                                       const pb::CreateInvitationRequest* request,
                                       pb::CreateInvitationResponse* response) override {
    return Serve(people_, context, *request,
                 [=](PeopleStore& store, const Caller& caller) -> AdminResult<void> {
                   auto parts = admin::NameParts(kWorkspace, request->parent(), "parent");
                   if (!parts) return Fail{parts.error()};
                   auto id = admin::RequiredRequestId(request->request_id());
                   if (!id) return Fail{id.error()};
                   // The person vouches for what their token creates.
                   Invitation invitation{
                       .workspace = parts->front(),
                       .actor = caller.user_id.empty() ? "" : "user:" + caller.user_id};
                   auto email = NormalEmail(request->invitation().email(), "invitation.email");
                   if (!email) return Fail{email.error()};
                   invitation.email = *email;
                   auto role = ParseRole(request->invitation().role(), "invitation.role");
                   if (!role) return Fail{role.error()};
                   invitation.role = *role;
                   // Operators of the platform invite a workspace's first owner.
                   const Role inviter =
                       caller.platform_operator ? Role::ROLE_OWNER : admin::ActingRole(caller);
                   if (!MayManage(inviter, *role)) {
                     return admin::PermissionDenied("PERMISSION_DENIED",
                                                    "only an owner may invite owners and admins");
                   }
                   if (*role == Role::ROLE_OWNER) {
                     if (auto fresh = admin::RequireStepUp(caller); !fresh) return fresh;
                   }
                   auto made = store.CreateInvitation(ActorOf(caller), invitation, *id);
                   if (!made) return Fail{made.error()};
                   Fill(made->invitation, *response->mutable_invitation());
                   if (!made->token.empty()) {
                     response->set_accept_path("/session/v1/invitation?token=" + made->token);
                   }
                   response->set_mailed(made->mailed);
                   return {};
                 });
  }
  ServerUnaryReactor* ListInvitations(CallbackServerContext* context,
                                      const pb::ListInvitationsRequest* request,
                                      pb::ListInvitationsResponse* response) override {
    return Serve(
        people_, context, *request,
        [=](PeopleStore& store, const Caller& caller) -> AdminResult<void> {
          auto parts = admin::NameParts(kWorkspace, request->parent(), "parent");
          if (!parts) return Fail{parts.error()};
          auto page = PageOf(*request, caller, "ListInvitations", "");
          if (!page) return Fail{page.error()};
          auto found = store.ListInvitations(parts->front(), page->size + 1, page->after);
          if (!found) return Fail{found.error()};
          const bool more = found->size() > static_cast<size_t>(page->size);
          if (more) found->pop_back();
          for (const Invitation& one : *found) Fill(one, *response->add_invitations());
          if (more) {
            response->set_next_page_token(admin::EncodePageToken(page->binding, found->back().id));
          }
          return {};
        });
  }
  ServerUnaryReactor* DeleteInvitation(CallbackServerContext* context,
                                       const pb::DeleteInvitationRequest* request,
                                       pb::DeleteInvitationResponse*) override {
    return Serve(people_, context, *request,
                 [=](PeopleStore& store, const Caller& caller) -> AdminResult<void> {
                   auto parts = admin::NameParts(kInvitation, request->name(), "name");
                   if (!parts) return Fail{parts.error()};
                   return store.DeleteInvitation(ActorOf(caller), (*parts)[0], (*parts)[1]);
                 });
  }
  ServerUnaryReactor* AcceptInvitation(CallbackServerContext* context,
                                       const pb::AcceptInvitationRequest* request,
                                       pb::Member* response) override {
    return Serve(people_, context, *request,
                 [=](PeopleStore& store, const Caller& caller) -> AdminResult<void> {
                   if (request->token().empty()) {
                     return admin::InvalidField("token", "the token of the invitation is required");
                   }
                   std::string workspace;
                   auto member = store.AcceptInvitation(ActorOf(caller), caller.user_id,
                                                        request->token(), &workspace);
                   if (!member) return Fail{member.error()};
                   Fill(*member, workspace, *response);
                   return {};
                 });
  }

 private:
  const PeopleSlot& people_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeMemberRpc(const PeopleSlot& people) {
  return std::make_unique<MemberRpc>(people);
}
std::unique_ptr<grpc::Service> MakeInvitationRpc(const PeopleSlot& people) {
  return std::make_unique<InvitationRpc>(people);
}

}  // namespace tollgate::auth
