#include <grpcpp/grpcpp.h>

#include "common/base/try.h"
#include "services/people/rpc/people_convert.h"
#include "services/people/rpc/people_rpc.h"
#include "tollgate/admin/v1/support_sessions.grpc.pb.h"

namespace tollgate::people {
namespace {

namespace pb = tollgate::admin::v1;
using admin::Caller;
using admin::Parts;
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
  explicit SupportRpc(const PeopleSlot& people) : people_{people} {}

  ServerUnaryReactor* CreateSupportSession(CallbackServerContext* context,
                                           const pb::CreateSupportSessionRequest* request,
                                           pb::CreateSupportSessionResponse* response) override {
    return admin::Handle(
        context, request, response, people_,
        [=](People& people, const Caller& caller, const Parts& name) -> AdminResult<void> {
          const pb::SupportSession& wanted = request->support_session();
          TRY(auto made,
              people.support().Create(
                  ActorOf(caller),
                  {.workspace = name[0],
                   .user_id = caller.user_id,
                   .reason = wanted.reason(),
                   .expires_us = wanted.has_expire_time() ? UsOf(wanted.expire_time()) : 0},
                  request->request_id()));
          Fill(made.session, *response->mutable_support_session());
          response->set_secret(made.secret);
          response->set_secret_shown(made.secret.empty());
          return {};
        });
  }

  ServerUnaryReactor* ListSupportSessions(CallbackServerContext* context,
                                          const pb::ListSupportSessionsRequest* request,
                                          pb::ListSupportSessionsResponse* response) override {
    return admin::Handle(
        context, request, response, people_,
        [=](People& people, const Caller& caller, const Parts& name) -> AdminResult<void> {
          TRY(auto page, admin::PageOfList(*request, caller));
          TRY(auto sessions, people.support().List(name[0], page.size + 1, page.position));
          admin::FillPage(
              page, sessions, *response,
              [&](const SupportSession& one) { Fill(one, *response->add_support_sessions()); },
              [](const SupportSession& one) { return one.id; });
          return {};
        });
  }

  ServerUnaryReactor* EndSupportSession(CallbackServerContext* context,
                                        const pb::EndSupportSessionRequest* request,
                                        pb::SupportSession* response) override {
    return admin::Handle(
        context, request, response, people_,
        [=](People& people, const Caller& caller, const Parts& name) -> AdminResult<void> {
          TRY(auto ended, people.support().End(ActorOf(caller), name[0], name[1]));
          Fill(ended, *response);
          return {};
        });
  }

 private:
  const OnPeople people_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeSupportRpc(const PeopleSlot& people) {
  return std::make_unique<SupportRpc>(people);
}

}  // namespace tollgate::people
