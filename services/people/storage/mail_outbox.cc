#include "services/people/storage/mail_outbox.h"

#include "common/base/id.h"
#include "common/base/seal.h"
#include "common/base/time_units.h"
#include "common/base/try.h"
#include "common/mail/mail.h"
#include "services/people/storage/people_store.h"

namespace tollgate::people {
namespace {

constexpr int64_t kMaxWaiting = 10'000;

constexpr std::string_view kMailColumns =
    "SELECT mail_id, kind, recipient, sealed, attempts, next_at_us, created_at_us, expires_at_us "
    "FROM mail_outbox";

OutboxMail ReadMail(const sql::Row& row) {
  return {.id = row.Text(0),
          .kind = row.Text(1),
          .recipient = row.Text(2),
          .sealed = row.Text(3),
          .attempts = row.Int(4),
          .next_us = row.Int(5),
          .created_us = row.Int(6),
          .expires_us = row.Int(7)};
}

std::string Context(std::string_view id) { return "mail " + std::string(id); }

}  // namespace

MailOutbox::MailOutbox(std::string seal_key, std::string public_url)
    : seal_key_(std::move(seal_key)), public_url_(std::move(public_url)) {
  while (public_url_.ends_with('/')) public_url_.pop_back();
}

std::string MailOutbox::Sealed(std::string_view id, const MailContent& content) const {
  return Seal(seal_key_, Context(id), content.subject + "\n" + content.body);
}

MailContent MailOutbox::Open(const OutboxMail& mail) const {
  const auto text = Unseal(seal_key_, Context(mail.id), mail.sealed);
  const size_t end = text ? text->find('\n') : std::string::npos;
  if (end == std::string::npos) return {};
  return {.subject = text->substr(0, end), .body = text->substr(end + 1)};
}

AdminResult<bool> MailOutbox::Put(PeopleTx& tx, std::string_view kind, std::string_view recipient,
                                  const MailContent& content, int64_t lives_us) const {
  if (!on() || !mail::IsEmail(recipient)) return false;
  int64_t waiting = 0;
  TRY(tx.Query("SELECT count(*) FROM mail_outbox", {},
               [&](const sql::Row& row) { waiting = row.Int(0); }));
  if (waiting >= kMaxWaiting) return false;
  const std::string id = Id::New().ToHex();
  const std::string sealed = Sealed(id, content);
  TRY(tx.Execute(
      "INSERT INTO mail_outbox (mail_id, kind, recipient, sealed, attempts, next_at_us, "
      "created_at_us, expires_at_us) VALUES ($1, $2, $3, $4, 0, $5, $5, $6)",
      {id, kind, recipient, sql::Param::Blob(sealed), tx.now_us(), tx.now_us() + lives_us}));
  return true;
}

AdminResult<bool> MailOutbox::PutResetRequest(PeopleTx& tx, std::string_view email,
                                              std::string_view address) const {
  return Put(tx, kResetRequest, email, {.subject = "-", .body = std::string(address)},
             kPasswordResetUs);
}

AdminResult<void> MailOutbox::Tell(PeopleTx& tx, const Person& person, SecurityChange change,
                                   std::string_view address) const {
  TRY(Put(tx, kSecurity, person.email, SecurityMail(change, address), 3 * kDayUs));
  return {};
}

AdminResult<std::vector<OutboxMail>> MailOutbox::Due(PeopleTx& tx, int limit) {
  std::vector<OutboxMail> due;
  TRY(tx.Query(
      std::string(kMailColumns) + " WHERE next_at_us <= $1 ORDER BY next_at_us, mail_id LIMIT $2",
      {tx.now_us(), limit}, [&](const sql::Row& row) { due.push_back(ReadMail(row)); }));
  return due;
}

AdminResult<bool> MailOutbox::Claim(PeopleTx& tx, OutboxMail& mail, int64_t until_us) {
  TRY(auto claimed,
      tx.Execute(
          "UPDATE mail_outbox SET next_at_us = $1, attempts = attempts + 1 WHERE mail_id = $2 AND "
          "next_at_us = $3 AND attempts = $4",
          {until_us, mail.id, mail.next_us, mail.attempts}));
  return claimed > 0;
}

AdminResult<void> MailOutbox::Remove(PeopleTx& tx, const OutboxMail& mail) {
  return WithoutValue(tx.Execute("DELETE FROM mail_outbox WHERE mail_id = $1 AND attempts = $2",
                                 {mail.id, mail.attempts}));
}

AdminResult<void> MailOutbox::Retry(PeopleTx& tx, const OutboxMail& mail, int64_t next_us) {
  return WithoutValue(
      tx.Execute("UPDATE mail_outbox SET next_at_us = $1 WHERE mail_id = $2 AND attempts = $3",
                 {next_us, mail.id, mail.attempts}));
}

AdminResult<bool> MailOutbox::Expand(PeopleTx& tx, OutboxMail& mail) const {
  TRY(auto found, FindPersonByEmail(tx, mail.recipient));
  if (!found || !found->active()) return false;
  const Person& person = *found;
  const std::string address = Open(mail).body;
  int64_t links = 0;
  TRY(tx.Query("SELECT count(*) FROM oidc_link WHERE user_id = $1", {person.user_id},
               [&](const sql::Row& row) { links = row.Int(0); }));
  MailContent content;
  if (person.password_hash.empty() && links > 0) {
    // A reset by mail must not bypass the provider's checks.
    content = NoPasswordMail(address);
  } else {
    TRY(auto token, AddPasswordReset(tx, person.user_id));
    content = PasswordResetMail(Link("/session/v1/resetPassword?token=" + token), address);
    AuditRecord record;
    record.actor = "anonymous";
    record.action = "user.request_password_reset";
    record.subject = "user:" + person.user_id;
    record.address = address;
    TRY(tx.Audit(std::move(record)));
  }
  mail.kind = kReset;
  mail.sealed = Sealed(mail.id, content);
  mail.expires_us = tx.now_us() + kPasswordResetUs;
  TRY(tx.Execute(
      "UPDATE mail_outbox SET kind = $1, sealed = $2, expires_at_us = $3 WHERE mail_id = $4",
      {mail.kind, sql::Param::Blob(mail.sealed), mail.expires_us, mail.id}));
  return true;
}

AdminResult<int64_t> MailOutbox::OldestUs(PeopleTx& tx) {
  int64_t oldest = 0;
  TRY(tx.Query("SELECT min(created_at_us) FROM mail_outbox", {},
               [&](const sql::Row& row) { oldest = row.Int(0); }));
  return oldest;
}

AdminResult<std::string> AddPasswordReset(PeopleTx& tx, const std::string& user_id) {
  const std::string token = NewSecret();
  const std::string hash = HashSecret(token);
  TRY(tx.Execute("DELETE FROM password_reset WHERE user_id = $1 OR expires_at_us < $2",
                 {user_id, tx.now_us()}));
  TRY(tx.Execute(
      "INSERT INTO password_reset (token_hash, user_id, expires_at_us) VALUES ($1, $2, $3)",
      {sql::Param::Blob(hash), user_id, tx.now_us() + kPasswordResetUs}));
  return token;
}

AdminResult<std::string> TakePasswordReset(PeopleTx& tx, std::string_view token) {
  const std::string hash = HashSecret(token);
  std::string user_id;
  TRY(tx.Query("SELECT user_id FROM password_reset WHERE token_hash = $1 AND expires_at_us > $2",
               {sql::Param::Blob(hash), tx.now_us()},
               [&](const sql::Row& row) { user_id = row.Text(0); }));
  TRY(tx.Execute("DELETE FROM password_reset WHERE token_hash = $1", {sql::Param::Blob(hash)}));
  return user_id;
}

}  // namespace tollgate::people
