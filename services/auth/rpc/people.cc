#include "services/auth/rpc/people.h"

#include "common/admin/access.h"
#include "common/observability/log.h"
#include "services/auth/oidc/oidc.h"

namespace tollgate::auth {
namespace {

constexpr int kWorkers = 2;
constexpr size_t kMaxQueued = 1024;
// At most 128 MiB for concurrent hashes, each of which takes 0.1 s.
constexpr int kSlowThreads = 2;
constexpr size_t kMaxSlowQueued = 64;

}  // namespace

People::People(sql::Database& database, const Clock& clock, const PeopleOptions& options,
               std::unique_ptr<Oidc> oidc)
    : store_(database, clock, options.times,
             options.mail.url.empty() ? MailOutbox()
                                      : MailOutbox(options.seal_key, options.public_url)),
      sign_in_(store_, options.seal_key, options.oidc_domains),
      support_(store_.database()),
      oidc_(std::move(oidc)),
      self_service_(options.self_service),
      workers_(kWorkers, kMaxQueued, "auth-people"),
      slow_(kSlowThreads, kMaxSlowQueued, "auth-passwords"),
      provider_(kSlowThreads, kMaxSlowQueued, "auth-oidc") {
  if (options.mail.url.empty()) return;
  mailer_.emplace(store_, Mailer::Options{.server = options.mail});
  mailer_->Start();
}

People::~People() { Stop(); }

void People::Stop() {
  if (mailer_) mailer_->Stop();
  if (oidc_) oidc_->Stop();
  provider_.Stop();
  slow_.Stop();
  workers_.Stop();
}

void FinishPeople(grpc::ServerUnaryReactor* reactor, const AdminResult<void>& result) {
  if (!result && !result.error().internal.empty()) {
    log::Warn("call of people failed",
              {{"reason", result.error().reason}, {"error", result.error().internal}});
  }
  reactor->Finish(admin::ToStatus(result));
}

grpc::ServerUnaryReactor* RunOnPeople(const PeopleSlot& slot, ThreadPool& (People::*pool)(),
                                      grpc::CallbackServerContext* context,
                                      std::function<AdminResult<void>(People&)> function) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  People* const people = slot.load();
  if (people == nullptr) {
    FinishPeople(reactor, Fail{admin::FromError(Unavailable("auth is not running").error)});
    return reactor;
  }
  const bool queued = (people->*pool)().Submit([people, reactor, function = std::move(function)] {
    FinishPeople(reactor, function(*people));
  });
  if (!queued) {
    FinishPeople(reactor, Fail{admin::FromError(Unavailable("too many calls at once").error)});
  }
  return reactor;
}

Actor ActorOf(const admin::Caller& caller) {
  return {.name = caller.actor, .address = caller.address, .request_id = caller.request_id};
}

grpc::ServerUnaryReactor* AdmitOnPeople(
    const PeopleSlot& slot, grpc::CallbackServerContext* context,
    const google::protobuf::Message& request,
    std::function<AdminResult<void>(People&, const admin::Caller&)> function) {
  auto caller = admin::Admit(*context, request);
  if (!caller) {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    FinishPeople(reactor, Fail{caller.error()});
    return reactor;
  }
  return RunOnPeople(slot, &People::workers, context,
                     [caller = *std::move(caller), function = std::move(function)](People& people) {
                       auto done = function(people, caller);
                       if (!done) admin::NoteRefusal(caller, done.error());
                       return done;
                     });
}

}  // namespace tollgate::auth
