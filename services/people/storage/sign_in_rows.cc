#include "services/people/storage/sign_in_rows.h"

#include "common/base/try.h"

namespace tollgate::people {
namespace {

// The text of the one row, or "".
AdminResult<std::string> TextOf(PeopleTx& tx, std::string_view statement,
                                std::initializer_list<sql::Param> params) {
  std::string text;
  TRY(tx.Query(statement, params, [&](const sql::Row& row) { text = row.Text(0); }));
  return text;
}

}  // namespace

AdminResult<void> DeleteEndedSessions(PeopleTx& tx, const SessionTimes& times) {
  return WithoutValue(tx.Execute("DELETE FROM session WHERE expires_at_us < $1 OR used_at_us < $2",
                                 {tx.now_us(), tx.now_us() - times.idle_us}));
}

AdminResult<void> DeleteSessionOf(PeopleTx& tx, std::string_view cookie) {
  const std::string hash = HashSecret(cookie);
  return WithoutValue(
      tx.Execute("DELETE FROM session WHERE token_hash = $1", {sql::Param::Blob(hash)}));
}

AdminResult<void> DeleteSession(PeopleTx& tx, const Session& session) {
  return WithoutValue(tx.Execute("DELETE FROM session WHERE session_id = $1", {session.id}));
}

AdminResult<void> MarkUsed(PeopleTx& tx, const Session& session) {
  return WithoutValue(
      tx.Execute("UPDATE session SET used_at_us = $1 WHERE session_id = $2 AND used_at_us < $1",
                 {tx.now_us(), session.id}));
}

AdminResult<void> MarkUsed(PeopleTx& tx, const AccessToken& token) {
  return WithoutValue(
      tx.Execute("UPDATE access_token SET used_at_us = $1 WHERE token_id = $2 AND used_at_us < $1",
                 {tx.now_us(), token.id}));
}

AdminResult<void> AddChallenge(PeopleTx& tx, std::string_view secret, std::string_view user_id) {
  const std::string hash = HashSecret(secret);
  TRY(tx.Execute("DELETE FROM sign_in_challenge WHERE expires_at_us < $1", {tx.now_us()}));
  return WithoutValue(tx.Execute(
      "INSERT INTO sign_in_challenge (token_hash, user_id, tries, expires_at_us) VALUES ($1, $2, "
      "0, $3)",
      {sql::Param::Blob(hash), user_id, tx.now_us() + kChallengeUs}));
}

AdminResult<std::string> HolderOfChallenge(PeopleTx& tx, std::string_view secret) {
  const std::string hash = HashSecret(secret);
  return TextOf(tx,
                "SELECT user_id FROM sign_in_challenge WHERE token_hash = $1 AND expires_at_us > "
                "$2 AND tries < $3",
                {sql::Param::Blob(hash), tx.now_us(), kChallengeTries});
}

AdminResult<bool> TakeChallengeTry(PeopleTx& tx, std::string_view secret) {
  const std::string hash = HashSecret(secret);
  TRY(auto counted, tx.Execute("UPDATE sign_in_challenge SET tries = tries + 1 WHERE token_hash = "
                               "$1 AND expires_at_us > $2 AND tries < $3",
                               {sql::Param::Blob(hash), tx.now_us(), kChallengeTries}));
  return counted > 0;
}

AdminResult<void> DeleteChallenge(PeopleTx& tx, std::string_view secret) {
  const std::string hash = HashSecret(secret);
  return WithoutValue(
      tx.Execute("DELETE FROM sign_in_challenge WHERE token_hash = $1", {sql::Param::Blob(hash)}));
}

AdminResult<bool> TakeRecoveryCode(PeopleTx& tx, std::string_view user_id, std::string_view hash) {
  TRY(auto used, tx.Execute("DELETE FROM recovery_code WHERE user_id = $1 AND code_hash = $2",
                            {user_id, sql::Param::Blob(hash)}));
  return used > 0;
}

AdminResult<void> ReplaceRecoveryCodes(PeopleTx& tx, std::string_view user_id,
                                       const std::vector<std::string>& hashes) {
  TRY(tx.Execute("DELETE FROM recovery_code WHERE user_id = $1", {user_id}));
  for (const std::string& hash : hashes) {
    TRY(tx.Execute("INSERT INTO recovery_code (user_id, code_hash) VALUES ($1, $2)",
                   {user_id, sql::Param::Blob(hash)}));
  }
  return {};
}

AdminResult<std::string> TakeSignInLink(PeopleTx& tx, std::string_view token) {
  const std::string hash = HashSecret(token);
  TRY(auto user_id,
      TextOf(tx, "SELECT user_id FROM sign_in_link WHERE token_hash = $1 AND expires_at_us > $2",
             {sql::Param::Blob(hash), tx.now_us()}));
  TRY(tx.Execute("DELETE FROM sign_in_link WHERE token_hash = $1", {sql::Param::Blob(hash)}));
  return user_id;
}

AdminResult<std::string> PersonOfOidc(PeopleTx& tx, std::string_view issuer,
                                      std::string_view subject) {
  return TextOf(tx, "SELECT user_id FROM oidc_link WHERE issuer = $1 AND subject = $2",
                {issuer, subject});
}

AdminResult<void> LinkOidc(PeopleTx& tx, std::string_view issuer, std::string_view subject,
                           std::string_view user_id) {
  return WithoutValue(
      tx.Execute("INSERT INTO oidc_link (issuer, subject, user_id) VALUES ($1, $2, $3)",
                 {issuer, subject, user_id}));
}

AdminResult<bool> IsInvited(PeopleTx& tx, std::string_view email) {
  int64_t invitations = 0;
  TRY(tx.Query("SELECT count(*) FROM invitation WHERE email = $1 AND expires_at_us > $2",
               {email, tx.now_us()}, [&](const sql::Row& row) { invitations = row.Int(0); }));
  return invitations > 0;
}

}  // namespace tollgate::people
