// The schema of the auth database, for SQLite and PostgreSQL.
#pragma once

#include <array>

#include "common/auth_schema/key_tables.h"
#include "common/auth_schema/limit_tables.h"
#include "common/auth_schema/people_tables.h"
#include "common/sql/sql.h"

namespace tollgate::auth_schema {

inline constexpr std::array<sql::Migration, 14> kMigrations = {
    {{1, "keys", R"(
CREATE TABLE workspace (
  workspace_id {text} NOT NULL PRIMARY KEY,
  name {text} NOT NULL,
  requests_per_minute {int} NOT NULL,
  tokens_per_minute {int} NOT NULL,
  concurrent_requests {int} NOT NULL,
  created_at_us {int} NOT NULL
) {strict};
CREATE TABLE virtual_key (
  key_id {text} NOT NULL PRIMARY KEY,
  lookup {blob} NOT NULL UNIQUE,
  workspace_id {text} NOT NULL REFERENCES workspace (workspace_id),
  name {text} NOT NULL,
  state {int} NOT NULL CHECK (state BETWEEN 1 AND 3),
  expires_at_us {int} NOT NULL,
  allowed_models {text} NOT NULL,
  requests_per_minute {int} NOT NULL,
  tokens_per_minute {int} NOT NULL,
  concurrent_requests {int} NOT NULL,
  version {int} NOT NULL,
  created_at_us {int} NOT NULL,
  last_four {text} NOT NULL
) {strict};
CREATE UNIQUE INDEX virtual_key_version ON virtual_key (version);
CREATE INDEX virtual_key_workspace ON virtual_key (workspace_id);
CREATE TABLE audit_event (
  sequence {int} NOT NULL PRIMARY KEY,
  at_us {int} NOT NULL,
  actor {text} NOT NULL,
  action {text} NOT NULL,
  workspace_id {text} NOT NULL,
  subject {text} NOT NULL,
  detail {text} NOT NULL,
  hash {blob} NOT NULL
) {strict};
CREATE INDEX audit_event_workspace ON audit_event (workspace_id, sequence);
CREATE TABLE admin_request (
  request_id {text} NOT NULL PRIMARY KEY,
  content {blob} NOT NULL,
  answer {blob} NOT NULL,
  at_us {int} NOT NULL
) {strict};
CREATE TABLE auth_head (
  id {int} NOT NULL PRIMARY KEY CHECK (id = 1),
  version {int} NOT NULL,
  audit_sequence {int} NOT NULL,
  audit_hash {blob} NOT NULL
) {strict};
)"},
     {2, "filter tags", R"(
ALTER TABLE virtual_key ADD COLUMN filter_tag {int} NOT NULL DEFAULT 0;
)"},
     {3, "quotas of keys", R"(
ALTER TABLE virtual_key ADD COLUMN monthly_quota {int};
)"},
     kPeopleMigration,
     {5, "life of keys", kLifeOfKeys},
     {6, "limits by model, and plans", kLimitsByModel},
     {7, "mail and password resets", kMail},
     {8, "support sessions", kSupportSessions},
     {9, "audit entries of other services", kAuditSources},
     {10, "refusals by code", kKeyRefusals},
     {11, "workspaces of demonstrations", R"(
ALTER TABLE workspace ADD COLUMN demonstration {int} NOT NULL DEFAULT 0;
)"},
     {12, "how keys are found", kKeyIndexes},
     {13, "refusals by reason", kRefusalReasons},
     {14, "lineages of rotated keys", kLineages}}};

}  // namespace tollgate::auth_schema
