// The rows of people_store.h.
#include "common/base/crypto.h"
#include "common/base/try.h"
#include "services/people/storage/people_store.h"

namespace tollgate::people {
namespace {

// Much longer than a client retries.
constexpr int64_t kKeepRequestsUs = int64_t{7} * 24 * 3600 * 1'000'000;

constexpr std::string_view kPersonColumns =
    "SELECT user_id, email, email_verified, display_name, state, platform_operator, password_hash, "
    "totp_sealed, totp_pending, totp_step, created_at_us FROM person";

Person ReadPerson(const sql::Row& row) {
  Person person;
  person.user_id = row.Text(0);
  person.email = row.Text(1);
  person.email_verified = row.Int(2) != 0;
  person.display_name = row.Text(3);
  person.state = static_cast<PersonState>(row.Int(4));
  person.platform_operator = row.Int(5) != 0;
  person.password_hash = row.Text(6);
  person.totp_sealed = row.Text(7);
  person.totp_pending = row.Text(8);
  person.totp_step = row.Int(9);
  person.created_us = row.Int(10);
  return person;
}

AdminResult<std::optional<Person>> FindOne(PeopleTx& tx, const std::string& text,
                                           std::string_view value) {
  std::optional<Person> found;
  TRY(tx.Query(text, {value}, [&](const sql::Row& row) { found = ReadPerson(row); }));
  return found;
}

}  // namespace

AdminResult<std::optional<Person>> FindPerson(PeopleTx& tx, std::string_view user_id) {
  return FindOne(tx, std::string(kPersonColumns) + " WHERE user_id = $1", user_id);
}

AdminResult<std::optional<Person>> FindPersonByEmail(PeopleTx& tx, std::string_view email) {
  return FindOne(tx, std::string(kPersonColumns) + " WHERE email = $1", email);
}

AdminResult<std::vector<Membership>> MembershipsOf(PeopleTx& tx, std::string_view user_id) {
  std::vector<Membership> memberships;
  TRY(tx.Query("SELECT workspace_id, role FROM membership WHERE user_id = $1 ORDER BY workspace_id",
               {user_id}, [&](const sql::Row& row) {
                 memberships.push_back({row.Text(0), static_cast<Role>(row.Int(1))});
               }));
  return memberships;
}

AdminResult<void> InsertPerson(PeopleTx& tx, const Person& person) {
  return WithoutValue(tx.Execute(
      "INSERT INTO person (user_id, email, email_verified, display_name, state, platform_operator, "
      "password_hash, totp_sealed, totp_pending, totp_step, created_at_us) VALUES ($1, $2, $3, $4, "
      "$5, $6, $7, $8, $9, $10, $11)",
      {person.user_id, person.email, static_cast<int64_t>(person.email_verified),
       person.display_name, static_cast<int64_t>(person.state),
       static_cast<int64_t>(person.platform_operator), person.password_hash,
       sql::Param::Blob(person.totp_sealed), sql::Param::Blob(person.totp_pending),
       person.totp_step, person.created_us}));
}

AdminResult<void> UpdatePerson(PeopleTx& tx, const Person& person) {
  return WithoutValue(tx.Execute(
      "UPDATE person SET email_verified = $1, display_name = $2, state = $3, platform_operator = "
      "$4, password_hash = $5, totp_sealed = $6, totp_pending = $7, totp_step = $8 "
      "WHERE user_id = $9",
      {static_cast<int64_t>(person.email_verified), person.display_name,
       static_cast<int64_t>(person.state), static_cast<int64_t>(person.platform_operator),
       person.password_hash, sql::Param::Blob(person.totp_sealed),
       sql::Param::Blob(person.totp_pending), person.totp_step, person.user_id}));
}

AdminResult<void> PutMembership(PeopleTx& tx, std::string_view workspace, std::string_view user_id,
                                Role role) {
  return tx.PutMembership(workspace, user_id, static_cast<int64_t>(role));
}

AdminResult<std::optional<Session>> FindSession(PeopleTx& tx, std::string_view cookie,
                                                const SessionTimes& times) {
  std::optional<Session> found;
  if (cookie.empty()) return found;
  const std::string hash = HashSecret(cookie);
  TRY(tx.Query(
      "SELECT session_id, user_id, address, user_agent, created_at_us, signed_in_us, used_at_us, "
      "expires_at_us FROM session WHERE token_hash = $1 AND expires_at_us > $2 AND used_at_us > $3",
      {sql::Param::Blob(hash), tx.now_us(), tx.now_us() - times.idle_us}, [&](const sql::Row& row) {
        found = Session{row.Text(0), row.Text(1), row.Text(2), row.Text(3),
                        row.Int(4),  row.Int(5),  row.Int(6),  row.Int(7)};
      }));
  return found;
}

AdminResult<void> InsertSession(PeopleTx& tx, const Session& session, std::string_view cookie) {
  const std::string hash = HashSecret(cookie);
  // Keeps the newest sessions of the person.
  TRY(tx.Execute(
      "DELETE FROM session WHERE user_id = $1 AND session_id NOT IN (SELECT session_id FROM "
      "session "
      "WHERE user_id = $1 ORDER BY created_at_us DESC, session_id DESC LIMIT $2)",
      {session.user_id, kMaxSessions - 1}));
  return WithoutValue(tx.Execute(
      "INSERT INTO session (session_id, token_hash, user_id, address, user_agent, created_at_us, "
      "signed_in_us, used_at_us, expires_at_us) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
      {session.id, sql::Param::Blob(hash), session.user_id, session.address, session.user_agent,
       session.created_us, session.signed_in_us, session.used_us, session.expires_us}));
}

AdminResult<int64_t> DeleteSessions(PeopleTx& tx, std::string_view user_id,
                                    std::string_view except_session_id) {
  return tx.Execute("DELETE FROM session WHERE user_id = $1 AND session_id <> $2",
                    {user_id, except_session_id});
}

AdminResult<std::optional<AccessToken>> FindToken(PeopleTx& tx, std::string_view secret) {
  std::optional<AccessToken> found;
  const std::string hash = HashSecret(secret);
  TRY(
      tx.Query("SELECT token_id, user_id, name, scopes, last_four, created_at_us, used_at_us, "
               "expires_at_us FROM access_token WHERE token_hash = $1 AND expires_at_us > $2",
               {sql::Param::Blob(hash), tx.now_us()}, [&](const sql::Row& row) {
                 found = AccessToken{.id = row.Text(0),
                                     .user_id = row.Text(1),
                                     .name = row.Text(2),
                                     .scopes = SplitLines(row.Bytes(3)),
                                     .last_four = row.Text(4),
                                     .created_us = row.Int(5),
                                     .used_us = row.Int(6),
                                     .expires_us = row.Int(7)};
               }));
  return found;
}

AdminResult<void> EndPending(PeopleTx& tx, std::string_view user_id) {
  for (const char* statement : {"DELETE FROM password_reset WHERE user_id = $1",
                                "DELETE FROM sign_in_link WHERE user_id = $1",
                                "DELETE FROM sign_in_challenge WHERE user_id = $1"}) {
    TRY(tx.Execute(statement, {user_id}));
  }
  return {};
}

AdminResult<void> RemoveTotp(PeopleTx& tx, Person& person) {
  person.totp_sealed.clear();
  person.totp_pending.clear();
  TRY(UpdatePerson(tx, person));
  TRY(EndPending(tx, person.user_id));
  return WithoutValue(tx.Execute("DELETE FROM recovery_code WHERE user_id = $1", {person.user_id}));
}

std::vector<std::string> SplitLines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

AdminResult<std::optional<std::string>> AnswerOfRequest(PeopleTx& tx, const std::string& key,
                                                        std::string_view content) {
  std::optional<std::string> answer;
  bool same = false;
  const std::string digest = Sha256(content);
  auto read = tx.Query("SELECT content, answer FROM admin_request WHERE request_id = $1", {key},
                       [&](const sql::Row& row) {
                         same = row.Bytes(0) == digest;
                         answer = row.Text(1);
                       });
  if (!read) return Fail{read.error()};
  if (answer && !same) return admin::RequestIdReused();
  return answer;
}

AdminResult<void> RememberRequest(PeopleTx& tx, const std::string& key, std::string_view content,
                                  std::string_view answer) {
  const std::string digest = Sha256(content);
  TRY(tx.Execute(
      "INSERT INTO admin_request (request_id, content, answer, at_us) VALUES ($1, $2, $3, $4)",
      {key, sql::Param::Blob(digest), sql::Param::Blob(answer), tx.now_us()}));
  return WithoutValue(
      tx.Execute("DELETE FROM admin_request WHERE at_us < $1", {tx.now_us() - kKeepRequestsUs}));
}

common::v1::Identity IdentityOf(const Person& person, const std::vector<Membership>& memberships) {
  common::v1::Identity identity;
  identity.set_actor("user:" + person.user_id);
  identity.set_user_id(person.user_id);
  identity.set_display_name(person.display_name.empty() ? person.email : person.display_name);
  identity.set_platform_operator(person.platform_operator);
  for (const Membership& membership : memberships) {
    auto* added = identity.add_memberships();
    added->set_workspace(membership.workspace);
    added->set_role(membership.role);
  }
  return identity;
}

}  // namespace tollgate::people
