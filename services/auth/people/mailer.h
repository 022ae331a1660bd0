// Sends what waits in the outbox. Every replica has one: a mail is claimed before it is sent, so
// that it is sent twice only when a replica crashes between sending it and removing it, and then
// with the same Message-ID.
#pragma once

#include <atomic>

#include "common/mail/mail.h"
#include "common/runtime/periodic_thread.h"
#include "services/auth/storage/people_store.h"

namespace tollgate::auth {

class Mailer {
 public:
  struct Options {
    mail::MailServer server;
    int timeout_ms = 20'000;
    int64_t claim_us = 120'000'000;  // longer than a send takes
  };
  // store must outlive this.
  Mailer(PeopleStore& store, Options options) : store_(store), options_(std::move(options)) {}
  ~Mailer() { Stop(); }

  // Looks for mails every second from here on.
  void Start();
  // Ends a send that is under way.
  void Stop();

  // Tries each mail that is due; returns their number. For the thread and for tests.
  int DeliverDue();

 private:
  // False: another replica has it, or there is nothing to send.
  bool Claim(OutboxMail& mail);
  void Deliver(OutboxMail& mail);
  void Finish(const OutboxMail& mail, const mail::Sent& sent);
  void ShowOldest();

  PeopleStore& store_;
  const Options options_;
  std::atomic<bool> stopped_{false};
  PeriodicThread thread_;
};

}  // namespace tollgate::auth
