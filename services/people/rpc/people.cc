#include "services/people/rpc/people.h"

#include "services/people/oidc/oidc.h"

namespace tollgate::people {
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
      workers_(kWorkers, kMaxQueued, "people-sql"),
      slow_(kSlowThreads, kMaxSlowQueued, "passwords"),
      provider_(kSlowThreads, kMaxSlowQueued, "people-oidc") {
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

Actor ActorOf(const admin::Caller& caller) {
  return {.name = caller.actor, .address = caller.address, .request_id = caller.request_id};
}

}  // namespace tollgate::people
