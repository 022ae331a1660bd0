// Mails that wait to be sent. A row is written in the transaction of the change that it tells of,
// and gone when the mail is sent or given up. What a mail says is sealed: a link in it signs in.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "services/auth/people/mail_text.h"
#include "services/auth/storage/people_tx.h"

namespace tollgate::auth {

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
  // An address that asks for a new password; whether it has an account is found out by whoever
  // claims the row, so that asking is the same work for each.
  static constexpr char kResetRequest[] = "password_reset_request";
  static constexpr char kReset[] = "password_reset";

  // Off: nothing is put.
  MailOutbox() = default;
  // seal_key: 32 bytes. public_url: of the dashboard.
  MailOutbox(std::string seal_key, std::string public_url);

  bool on() const { return !seal_key_.empty(); }
  // path begins with "/".
  std::string Link(std::string_view path) const { return public_url_ + std::string(path); }

  // False: nothing was put, since mail is off, the recipient is no plain mailbox, or 10,000 mails
  // wait.
  AdminResult<bool> Put(PeopleTx& tx, std::string_view kind, std::string_view recipient,
                        const MailContent& content, int64_t lives_us) const;
  // The address of the client that asks is kept for the mail.
  AdminResult<bool> PutResetRequest(PeopleTx& tx, std::string_view email,
                                    std::string_view address) const;
  AdminResult<void> Tell(PeopleTx& tx, const Person& person, SecurityChange change,
                         std::string_view address) const;

  // ---- For the sender. ----
  static AdminResult<std::vector<OutboxMail>> Due(PeopleTx& tx, int limit);
  // False: another replica was first. Changes the mail.
  static AdminResult<bool> Claim(PeopleTx& tx, OutboxMail& mail, int64_t until_us);
  static AdminResult<void> Remove(PeopleTx& tx, const OutboxMail& mail);
  // The claim has run out or another try is due at next_us.
  static AdminResult<void> Retry(PeopleTx& tx, const OutboxMail& mail, int64_t next_us);
  // Of a claimed kResetRequest: makes the link and the mail. False: there is nothing to send.
  AdminResult<bool> Expand(PeopleTx& tx, OutboxMail& mail) const;
  // Empty subject: it was sealed with another key.
  MailContent Open(const OutboxMail& mail) const;
  // When the oldest waiting mail was put; 0: none waits.
  static AdminResult<int64_t> OldestUs(PeopleTx& tx);

 private:
  std::string Sealed(std::string_view id, const MailContent& content) const;

  std::string seal_key_;
  std::string public_url_;
};

// A link that sets a new password: once, within an hour, in the place of an earlier one.
inline constexpr int64_t kPasswordResetUs = int64_t{3600} * 1'000'000;
AdminResult<std::string> AddPasswordReset(PeopleTx& tx, const std::string& user_id);
// The person of the link, which is used up; empty: it is not (or no longer) good.
AdminResult<std::string> TakePasswordReset(PeopleTx& tx, std::string_view token);

}  // namespace tollgate::auth
