// Migrations 5, 9, 10, 12, 13 and 14: life cycle of keys and workspaces, addresses of audit events,
// refusals, indexes for finding keys, and lineages.
#pragma once

#include <string_view>

namespace tollgate::auth_schema {

inline constexpr std::string_view kLifeOfKeys = R"(
ALTER TABLE workspace ADD COLUMN state {int} NOT NULL DEFAULT 1;
ALTER TABLE workspace ADD COLUMN close_at_us {int} NOT NULL DEFAULT 0;
ALTER TABLE workspace ADD COLUMN report_time_zone {text} NOT NULL DEFAULT 'UTC';
ALTER TABLE workspace ADD COLUMN updated_at_us {int} NOT NULL DEFAULT 0;
ALTER TABLE workspace ADD COLUMN revision {int} NOT NULL DEFAULT 0;
CREATE INDEX workspace_closing ON workspace (state, close_at_us);
ALTER TABLE virtual_key ADD COLUMN allowed_addresses {text} NOT NULL DEFAULT '';
ALTER TABLE virtual_key ADD COLUMN labels {text} NOT NULL DEFAULT '';
ALTER TABLE virtual_key ADD COLUMN created_by {text} NOT NULL DEFAULT '';
ALTER TABLE virtual_key ADD COLUMN rotated_from {text} NOT NULL DEFAULT '';
ALTER TABLE virtual_key ADD COLUMN state_reason {text} NOT NULL DEFAULT '';
ALTER TABLE virtual_key ADD COLUMN updated_at_us {int} NOT NULL DEFAULT 0;
ALTER TABLE virtual_key ADD COLUMN last_used_us {int} NOT NULL DEFAULT 0;
ALTER TABLE virtual_key ADD COLUMN pepper_id {text} NOT NULL DEFAULT '';
CREATE INDEX virtual_key_listed ON virtual_key (workspace_id, created_at_us, key_id);
ALTER TABLE audit_event ADD COLUMN address {text} NOT NULL DEFAULT '';
ALTER TABLE audit_event ADD COLUMN format {int} NOT NULL DEFAULT 1;
CREATE TABLE key_use (
  key_id {text} NOT NULL,
  kind {int} NOT NULL,
  period {int} NOT NULL,
  source {text} NOT NULL,
  amount {int} NOT NULL,
  PRIMARY KEY (key_id, kind, period, source)
) {strict};
CREATE INDEX key_use_period ON key_use (kind, period);
)";

// Migration 9: entries copied from the logs of other services, each once.
inline constexpr std::string_view kAuditSources = R"(
ALTER TABLE audit_event ADD COLUMN request_id {text} NOT NULL DEFAULT '';
ALTER TABLE audit_event ADD COLUMN source {text} NOT NULL DEFAULT '';
ALTER TABLE audit_event ADD COLUMN source_sequence {int} NOT NULL DEFAULT 0;
ALTER TABLE audit_event ADD COLUMN source_hash {blob};
CREATE UNIQUE INDEX audit_event_source ON audit_event (source, source_sequence) WHERE source <> '';
)";

// Migration 10: calls that gateways answered with an error (decision 55).
inline constexpr std::string_view kKeyRefusals = R"(
CREATE TABLE key_refusal (
  key_id {text} NOT NULL,
  quarter {int} NOT NULL,
  code {text} NOT NULL,
  source {text} NOT NULL,
  amount {int} NOT NULL,
  PRIMARY KEY (key_id, quarter, code, source)
) {strict};
CREATE INDEX key_refusal_quarter ON key_refusal (quarter);
)";

// Migration 12: finds keys by prefix and by state in workspaces with very many keys.
inline constexpr std::string_view kKeyIndexes = R"(
CREATE INDEX virtual_key_named ON virtual_key (workspace_id, lower(name), created_at_us, key_id);
CREATE INDEX virtual_key_ids ON virtual_key (workspace_id, key_id, created_at_us);
CREATE INDEX virtual_key_last_four ON virtual_key (workspace_id, last_four, created_at_us, key_id);
CREATE INDEX virtual_key_state ON virtual_key (workspace_id, state, created_at_us, key_id);
)";

// Migration 13: replaces key_refusal, which processes of an older version may still write.
inline constexpr std::string_view kRefusalReasons = R"(
CREATE TABLE key_refusal_reason (
  key_id {text} NOT NULL,
  quarter {int} NOT NULL,
  code {text} NOT NULL,
  reason {text} NOT NULL,
  source {text} NOT NULL,
  amount {int} NOT NULL,
  PRIMARY KEY (key_id, quarter, code, reason, source)
) {strict};
CREATE INDEX key_refusal_reason_quarter ON key_refusal_reason (quarter);
)";

// Migration 14: the keys that came from one key by rotation, oldest first, one id per line. Where
// keys were rotated before, only the newer ones know the older ones.
inline constexpr std::string_view kLineages = R"(
ALTER TABLE virtual_key ADD COLUMN lineage {text} NOT NULL DEFAULT '';
WITH RECURSIVE chain (key_id, lineage) AS (
  SELECT k.key_id, k.key_id FROM virtual_key k WHERE k.rotated_from = ''
    AND k.key_id IN (SELECT rotated_from FROM virtual_key)
  UNION ALL
  SELECT k.key_id, c.lineage || '
' || k.key_id FROM virtual_key k JOIN chain c ON k.rotated_from = c.key_id
)
UPDATE virtual_key SET lineage =
    (SELECT c.lineage FROM chain c WHERE c.key_id = virtual_key.key_id)
  WHERE rotated_from <> '' AND key_id IN (SELECT key_id FROM chain);
)";

}  // namespace tollgate::auth_schema
