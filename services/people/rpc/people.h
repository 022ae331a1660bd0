// State of the handlers while the service runs: storage and threads. See people_rpc.h.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/admin/caller.h"
#include "common/admin/on_pool.h"
#include "common/runtime/thread_pool.h"
#include "services/people/mail/mailer.h"
#include "services/people/sign_in/sign_in.h"
#include "services/people/storage/people_store.h"
#include "services/people/storage/support_store.h"

namespace tollgate::people {

class Oidc;

struct PeopleOptions {
  SessionTimes times;
  std::string seal_key;  // 32 bytes
  std::vector<std::string> oidc_domains;
  std::string public_url;      // the dashboard's address, for links in mails
  mail::MailServer mail = {};  // off without a url
  bool self_service = false;   // every person may create workspaces
};

class People {
 public:
  People(sql::Database& database, const Clock& clock, const PeopleOptions& options,
         std::unique_ptr<Oidc> oidc);
  ~People();

  PeopleStore& store() { return store_; }
  SignIn& sign_in() { return sign_in_; }
  SupportStore& support() { return support_; }
  Oidc* oidc() { return oidc_.get(); }  // null: off
  bool sends_mail() const { return mailer_.has_value(); }
  bool self_service() const { return self_service_; }

  // Runs database calls.
  ThreadPool& workers() { return workers_; }
  // Runs password hashes, each of which takes 64 MiB.
  ThreadPool& slow() { return slow_; }
  // Runs calls of the OpenID Connect provider, which may hang.
  ThreadPool& provider() { return provider_; }
  void Stop();

 private:
  PeopleStore store_;
  SignIn sign_in_;
  SupportStore support_;
  std::optional<Mailer> mailer_;
  std::unique_ptr<Oidc> oidc_;
  const bool self_service_;
  ThreadPool workers_;
  ThreadPool slow_, provider_;
};

// Null before Start and after Stop: calls fail with UNAVAILABLE then.
using PeopleSlot = std::atomic<People*>;

using OnPeople = admin::OnPool<People>;

// The caller of an admin method as the actor in the audit log.
Actor ActorOf(const admin::Caller& caller);

}  // namespace tollgate::people
