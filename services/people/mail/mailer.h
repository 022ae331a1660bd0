// Sends the mails of the outbox. Every replica has one. A mail is claimed before it is sent, so it
// is sent twice only if a replica crashes between sending and removing it; both then have the same
// Message-ID.
#pragma once

#include <atomic>

#include "common/mail/mail.h"
#include "common/runtime/periodic_thread.h"
#include "services/people/storage/people_store.h"

namespace tollgate::people {

class Mailer {
 public:
  struct Options {
    mail::MailServer server;
    int timeout_ms = 20'000;
    int64_t claim_us = 120'000'000;  // longer than a send takes
  };
  // store must outlive the mailer.
  Mailer(PeopleStore& store, Options options) : store_(store), options_(std::move(options)) {}
  ~Mailer() { Stop(); }

  // Starts the thread that looks for mails every second.
  void Start();
  // Aborts a running send.
  void Stop();

  // Tries each mail that is due and returns how many there were. Called by the thread and by tests.
  int DeliverDue();

 private:
  // Returns false if another replica has the mail, or there is nothing to send.
  bool Claim(OutboxMail& mail);
  void Deliver(OutboxMail& mail);
  void Finish(const OutboxMail& mail, const mail::Sent& sent);
  void ShowOldest();

  PeopleStore& store_;
  const Options options_;
  std::atomic<bool> stopped_{false};
  PeriodicThread thread_;
};

}  // namespace tollgate::people
