#include "services/people/mail/mailer.h"

#include <algorithm>
#include <chrono>

#include "common/base/try.h"
#include "common/observability/log.h"
#include "common/observability/metrics.h"

namespace tollgate::people {
namespace {

constexpr int kBatch = 16;
constexpr int64_t kFirstWaitUs = 2'000'000;
constexpr int64_t kLongestWaitUs = 3'600'000'000;

// Starts at 2 s, because people wait for a new password, and doubles up to an hour.
int64_t WaitUs(int64_t attempts) {
  return attempts > 11
             ? kLongestWaitUs
             : std::min(kLongestWaitUs, kFirstWaitUs << std::max<int64_t>(attempts - 1, 0));
}

prometheus::Counter& Mails(const char* result) {
  return metrics::Counter("tollgate_auth_mails_total", "Tries to send mails to people, by result.",
                          {{"result", result}});
}

void Count(const char* result) { Mails(result).Increment(); }

}  // namespace

void Mailer::Start() {
  // Registers all results at 0, so that alerts see the first increase.
  for (const char* result : {"sent", "failed", "given_up"}) Mails(result);
  thread_.Start("people-mailer", std::chrono::seconds(1), [this] {
    while (!stopped_ && DeliverDue() > 0) {
    }
    ShowOldest();
  });
}

void Mailer::Stop() {
  stopped_ = true;
  thread_.Stop();
}

void Mailer::ShowOldest() {
  int64_t oldest_us = 0;
  auto read = store_.database().Read([&](PeopleTx& tx) -> AdminResult<void> {
    TRY(auto found, MailOutbox::OldestUs(tx));
    oldest_us = found;
    return {};
  });
  if (!read) return;
  const int64_t age_us = oldest_us == 0 ? 0 : store_.database().NowUs() - oldest_us;
  metrics::Gauge("tollgate_auth_mail_waiting_seconds",
                 "Age of the oldest mail to a person that is not sent; 0: none waits.")
      .Set(static_cast<double>(std::max<int64_t>(age_us, 0)) / 1e6);
}

bool Mailer::Claim(OutboxMail& mail) {
  bool claimed = false;
  OutboxMail mine;
  const auto claim = [&](PeopleTx& tx) -> AdminResult<void> {
    claimed = false;
    mine = mail;
    const int64_t until_us = tx.now_us() + options_.claim_us;
    TRY(auto first, MailOutbox::Claim(tx, mine, until_us));
    if (!first) return {};
    mine.next_us = until_us;
    ++mine.attempts;
    claimed = true;
    if (mine.kind != MailOutbox::kResetRequest) return {};
    TRY(auto something, store_.outbox().Expand(tx, mine));
    if (something) return {};
    claimed = false;
    return MailOutbox::Remove(tx, mine);
  };
  // Audited changes run in the order of all changes.
  auto done = mail.kind == MailOutbox::kResetRequest ? store_.database().Write(claim)
                                                     : store_.database().Touch(claim);
  if (!done) {
    log::Warn("a mail could not be claimed; will retry",
              {{"mail", mail.id}, {"error", done.error().message}});
    return false;
  }
  mail = std::move(mine);
  return claimed;
}

void Mailer::Deliver(OutboxMail& mail) {
  const MailContent content = store_.outbox().Open(mail);
  if (content.subject.empty()) {
    return Finish(mail, {.ok = false, .result = "sealed with another key"});
  }
  const std::string text = mail::MailText({.from = options_.server.from,
                                           .to = mail.recipient,
                                           .subject = content.subject,
                                           .id = mail.id,
                                           .at_us = mail.created_us,
                                           .body = content.body});
  Finish(mail,
         mail::SendMail(options_.server, mail.recipient, text, options_.timeout_ms, &stopped_));
}

void Mailer::Finish(const OutboxMail& mail, const mail::Sent& sent) {
  const int64_t next_us = store_.database().NowUs() + WaitUs(mail.attempts);
  const bool given_up = !sent.ok && next_us >= mail.expires_us;
  Count(sent.ok ? "sent" : given_up ? "given_up" : "failed");
  if (!sent.ok) {
    log::Warn(given_up ? "a mail was given up" : "a mail could not be sent; will retry",
              {{"mail", mail.id}, {"kind", mail.kind}, {"result", sent.result}});
  }
  auto done = store_.database().Touch([&](PeopleTx& tx) {
    return sent.ok || given_up ? MailOutbox::Remove(tx, mail)
                               : MailOutbox::Retry(tx, mail, next_us);
  });
  // The claim expires, and the mail is sent again.
  if (!done) {
    log::Warn("the result of a mail could not be stored",
              {{"mail", mail.id}, {"error", done.error().message}});
  }
}

int Mailer::DeliverDue() {
  std::vector<OutboxMail> due;
  auto read = store_.database().Read([&](PeopleTx& tx) -> AdminResult<void> {
    TRY(auto found, MailOutbox::Due(tx, kBatch));
    due = std::move(found);
    return {};
  });
  if (!read) {
    log::Warn("the outbox of mails cannot be read", {{"error", read.error().message}});
    return 0;
  }
  int tried = 0;
  for (OutboxMail& mail : due) {
    if (stopped_) break;
    if (!Claim(mail)) continue;
    Deliver(mail);
    ++tried;
  }
  return tried;
}

}  // namespace tollgate::people
