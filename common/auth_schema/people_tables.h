// The tables of people: accounts, memberships, invitations, sessions, access tokens. Secrets are
// stored as hashes (services/people/rules/people_rules.h), passwords as argon2id, TOTP secrets
// sealed.
#pragma once

#include "common/sql/sql.h"

namespace tollgate::auth_schema {

inline constexpr sql::Migration kPeopleMigration = {4, "people", R"(
CREATE TABLE person (
  user_id {text} NOT NULL PRIMARY KEY,
  email {text} NOT NULL UNIQUE,
  email_verified {int} NOT NULL,
  display_name {text} NOT NULL,
  state {int} NOT NULL CHECK (state BETWEEN 1 AND 2),
  platform_operator {int} NOT NULL,
  password_hash {text} NOT NULL,
  totp_sealed {blob} NOT NULL,
  totp_pending {blob} NOT NULL,
  totp_step {int} NOT NULL,
  created_at_us {int} NOT NULL
) {strict};
CREATE TABLE membership (
  workspace_id {text} NOT NULL,
  user_id {text} NOT NULL REFERENCES person (user_id),
  role {int} NOT NULL CHECK (role BETWEEN 1 AND 5),
  created_at_us {int} NOT NULL,
  PRIMARY KEY (workspace_id, user_id)
) {strict};
CREATE INDEX membership_person ON membership (user_id);
CREATE TABLE invitation (
  invitation_id {text} NOT NULL PRIMARY KEY,
  token_hash {blob} NOT NULL UNIQUE,
  workspace_id {text} NOT NULL,
  email {text} NOT NULL,
  role {int} NOT NULL CHECK (role BETWEEN 1 AND 5),
  actor {text} NOT NULL,
  created_at_us {int} NOT NULL,
  expires_at_us {int} NOT NULL,
  UNIQUE (workspace_id, email)
) {strict};
CREATE TABLE session (
  session_id {text} NOT NULL PRIMARY KEY,
  token_hash {blob} NOT NULL UNIQUE,
  user_id {text} NOT NULL REFERENCES person (user_id),
  address {text} NOT NULL,
  user_agent {text} NOT NULL,
  created_at_us {int} NOT NULL,
  signed_in_us {int} NOT NULL,
  used_at_us {int} NOT NULL,
  expires_at_us {int} NOT NULL
) {strict};
CREATE INDEX session_person ON session (user_id);
CREATE TABLE access_token (
  token_id {text} NOT NULL PRIMARY KEY,
  token_hash {blob} NOT NULL UNIQUE,
  user_id {text} NOT NULL REFERENCES person (user_id),
  name {text} NOT NULL,
  scopes {text} NOT NULL,
  last_four {text} NOT NULL,
  created_at_us {int} NOT NULL,
  used_at_us {int} NOT NULL,
  expires_at_us {int} NOT NULL
) {strict};
CREATE INDEX access_token_person ON access_token (user_id);
CREATE TABLE recovery_code (
  user_id {text} NOT NULL REFERENCES person (user_id),
  code_hash {blob} NOT NULL,
  PRIMARY KEY (user_id, code_hash)
) {strict};
CREATE TABLE sign_in_link (
  token_hash {blob} NOT NULL PRIMARY KEY,
  user_id {text} NOT NULL REFERENCES person (user_id),
  expires_at_us {int} NOT NULL
) {strict};
CREATE TABLE sign_in_challenge (
  token_hash {blob} NOT NULL PRIMARY KEY,
  user_id {text} NOT NULL REFERENCES person (user_id),
  tries {int} NOT NULL,
  expires_at_us {int} NOT NULL
) {strict};
CREATE TABLE sign_in_tries (
  subject {text} NOT NULL PRIMARY KEY,
  full_at_us {int} NOT NULL
) {strict};
CREATE TABLE oidc_link (
  issuer {text} NOT NULL,
  subject {text} NOT NULL,
  user_id {text} NOT NULL REFERENCES person (user_id),
  PRIMARY KEY (issuer, subject)
) {strict};
)"};

// Mails that wait (sealed, because they contain links), and links that set a new password.
inline constexpr char kMail[] = R"(
CREATE TABLE mail_outbox (
  mail_id {text} NOT NULL PRIMARY KEY,
  kind {text} NOT NULL,
  recipient {text} NOT NULL,
  sealed {blob} NOT NULL,
  attempts {int} NOT NULL,
  next_at_us {int} NOT NULL,
  created_at_us {int} NOT NULL,
  expires_at_us {int} NOT NULL
) {strict};
CREATE INDEX mail_outbox_due ON mail_outbox (next_at_us);
CREATE TABLE password_reset (
  token_hash {blob} NOT NULL PRIMARY KEY,
  user_id {text} NOT NULL UNIQUE REFERENCES person (user_id),
  expires_at_us {int} NOT NULL
) {strict};
)";

inline constexpr char kSupportSessions[] = R"(
CREATE TABLE support_session (
  session_id {text} NOT NULL PRIMARY KEY,
  token_hash {blob} NOT NULL UNIQUE,
  workspace_id {text} NOT NULL,
  user_id {text} NOT NULL,
  actor {text} NOT NULL,
  reason {text} NOT NULL,
  created_at_us {int} NOT NULL,
  expires_at_us {int} NOT NULL,
  uses {int} NOT NULL,
  used_at_us {int} NOT NULL
) {strict};
CREATE INDEX support_session_workspace ON support_session (workspace_id, session_id);
)";

}  // namespace tollgate::auth_schema
