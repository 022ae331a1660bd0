// Mails that wait to be sent. A row is written in the transaction of the change that it reports,
// and deleted when the mail is sent or given up. Contents are sealed, because the links in them
// sign people in.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "services/people/rules/mail_text.h"
#include "services/people/storage/people_tx.h"

namespace tollgate::people {

struct Person;

struct OutboxMail {
  std::string id;
  std::string kind;
  std::string recipient;
  std::string sealed;
  int64_t attempts = 0;
  int64_t next_us = 0;
  int64_t created_us = 0;
  int64_t expires_us = 0;
};

// Thread-safe.
class MailOutbox {
 public:
  static constexpr char kInvitation[] = "invitation";
  static constexpr char kSecurity[] = "security";
  // Kind of a row that requests a new password for an address. The mailer checks whether the
  // address has an account, so that the request costs the same work for every address.
  static constexpr char kResetRequest[] = "password_reset_request";
  static constexpr char kReset[] = "password_reset";

  // An outbox without mail: Put stores nothing.
  MailOutbox() = default;
  // seal_key: 32 bytes. public_url: address of the dashboard.
  MailOutbox(std::string seal_key, std::string public_url);

  bool on() const { return !seal_key_.empty(); }
  // path begins with "/".
  std::string Link(std::string_view path) const { return public_url_ + std::string(path); }

  // Returns false if nothing was stored: mail is off, the recipient is not a plain mailbox, or
  // 10,000 mails wait.
  AdminResult<bool> Put(PeopleTx& tx, std::string_view kind, std::string_view recipient,
                        const MailContent& content, int64_t lives_us) const;
  // address: of the requesting client; the mail mentions it.
  AdminResult<bool> PutResetRequest(PeopleTx& tx, std::string_view email,
                                    std::string_view address) const;
  AdminResult<void> Tell(PeopleTx& tx, const Person& person, SecurityChange change,
                         std::string_view address) const;

  // ---- For the mailer. ----
  static AdminResult<std::vector<OutboxMail>> Due(PeopleTx& tx, int limit);
  // Returns false if another replica was first. Updates the mail.
  static AdminResult<bool> Claim(PeopleTx& tx, OutboxMail& mail, int64_t until_us);
  static AdminResult<void> Remove(PeopleTx& tx, const OutboxMail& mail);
  // Schedules the next attempt for next_us, unless the mail was claimed again.
  static AdminResult<void> Retry(PeopleTx& tx, const OutboxMail& mail, int64_t next_us);
  // Turns a claimed kResetRequest into a mail with a link. Returns false if there is nothing to
  // send.
  AdminResult<bool> Expand(PeopleTx& tx, OutboxMail& mail) const;
  // The subject is empty if the mail was sealed with another key.
  MailContent Open(const OutboxMail& mail) const;
  // When the oldest waiting mail was stored; 0: none waits.
  static AdminResult<int64_t> OldestUs(PeopleTx& tx);

 private:
  std::string Sealed(std::string_view id, const MailContent& content) const;

  std::string seal_key_;
  std::string public_url_;
};

// Creates a link that sets a new password once, within an hour. It replaces an earlier one.
inline constexpr int64_t kPasswordResetUs = int64_t{3600} * 1'000'000;
AdminResult<std::string> AddPasswordReset(PeopleTx& tx, const std::string& user_id);
// Uses the link up and returns its person; "" if it is invalid or has expired.
AdminResult<std::string> TakePasswordReset(PeopleTx& tx, std::string_view token);

}  // namespace tollgate::people
