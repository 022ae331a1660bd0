#include <grpcpp/grpcpp.h>

#include "common/admin/access.h"
#include "common/admin/paging.h"
#include "common/admin/values.h"
#include "services/auth/rpc/people_convert.h"
#include "services/auth/rpc/people_rpc.h"
#include "tollgate/admin/v1/support_sessions.grpc.pb.h"

namespace tollgate::auth {
namespace {

namespace pb = tollgate::admin::v1;
using admin::Caller;
using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

void Fill(const SupportSession& session, pb::SupportSession& out) {
  out.set_name("workspaces/" + session.workspace + "/supportSessions/" + session.id);
  out.set_reason(session.reason);
  out.set_actor(session.actor);
  SetTime(session.created_us, *out.mutable_create_time());
  SetTime(session.expires_us, *out.mutable_expire_time());
  out.set_use_count(session.uses);
  if (session.used_us > 0) SetTime(session.used_us, *out.mutable_last_used_time());
}

class SupportRpc : public pb::SupportSessionService::CallbackService {
 public:
  explicit SupportRpc(const PeopleSlot& people) : people_(people) {}

  ServerUnaryReactor* CreateSupportSession(CallbackServerContext* context,
                                           const pb::CreateSupportSessionRequest* request,
                                           pb::CreateSupportSessionResponse* response) override {
    return Serve(context, *request, [=](People& people, const Caller& caller) -> AdminResult<void> {
      auto parts = admin::NameParts("workspaces/*", request->parent(), "parent");
      if (!parts) return Fail{parts.error()};
      auto id = admin::RequiredRequestId(request->request_id());
      if (!id) return Fail{id.error()};
      const pb::SupportSession& wanted = request->support_session();
      auto made = people.support().Create(
          ActorOf(caller),
          {.workspace = parts->front(),
           .user_id = caller.user_id,
           .reason = wanted.reason(),
           .expires_us = wanted.has_expire_time() ? UsOf(wanted.expire_time()) : 0},
          *id);
      if (!made) return Fail{made.error()};
      Fill(made->session, *response->mutable_support_session());
      response->set_secret(made->secret);
      response->set_secret_shown(made->secret.empty());
      return {};
    });
  }

  ServerUnaryReactor* ListSupportSessions(CallbackServerContext* context,
                                          const pb::ListSupportSessionsRequest* request,
                                          pb::ListSupportSessionsResponse* response) override {
    return Serve(context, *request, [=](People& people, const Caller& caller) -> AdminResult<void> {
      auto parts = admin::NameParts("workspaces/*", request->parent(), "parent");
      if (!parts) return Fail{parts.error()};
      auto size = admin::PageSize(request->page_size());
      if (!size) return Fail{size.error()};
      const std::string binding = "ListSupportSessions\n" + caller.actor + "\n" + request->parent();
      auto after = admin::DecodePageToken(binding, request->page_token());
      if (!after) return Fail{after.error()};
      auto sessions = people.support().List(parts->front(), *size + 1, *after);
      if (!sessions) return Fail{sessions.error()};
      const bool more = sessions->size() > static_cast<size_t>(*size);
      if (more) sessions->pop_back();
      for (const SupportSession& one : *sessions) {
        Fill(one, *response->add_support_sessions());
      }
      if (more) {
        response->set_next_page_token(admin::EncodePageToken(binding, sessions->back().id));
      }
      return {};
    });
  }

  ServerUnaryReactor* EndSupportSession(CallbackServerContext* context,
                                        const pb::EndSupportSessionRequest* request,
                                        pb::SupportSession* response) override {
    return Serve(context, *request, [=](People& people, const Caller& caller) -> AdminResult<void> {
      auto parts = admin::NameParts("workspaces/*/supportSessions/*", request->name(), "name");
      if (!parts) return Fail{parts.error()};
      auto ended = people.support().End(ActorOf(caller), (*parts)[0], (*parts)[1]);
      if (!ended) return Fail{ended.error()};
      Fill(*ended, *response);
      return {};
    });
  }

 private:
  ServerUnaryReactor* Serve(CallbackServerContext* context,
                            const google::protobuf::Message& request,
                            std::function<AdminResult<void>(People&, const Caller&)> function) {
    return AdmitOnPeople(people_, context, request, std::move(function));
  }

  const PeopleSlot& people_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeSupportRpc(const PeopleSlot& people) {
  return std::make_unique<SupportRpc>(people);
}

}  // namespace tollgate::auth
