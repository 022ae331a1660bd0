// The tables of the roll-ups that follow the entries (ADR 0025).
#pragma once

#include <string_view>

namespace tollgate::billing {

// rollup_cut: newest entry of a workspace that the other tables contain. base_us: usage admitted
// before was taken from the roll-ups by key, because its entries were already archived; 0: none
// was. workspace_quarter and workspace_day: usage_quarter and usage_day without the key.
// key_spend_day and key_spend_month: amounts charged for requests of a key admitted in that period.
// statement_month: amounts that entries of a month (by their time) added to the posted credit, by
// kind; month 0 has those of archived entries. statement_usage: the usage lines of that month.
// expired_charge: requests that were charged when they expired, while they can be corrected.
// rollup_stale: quarters of an hour whose sums must be recomputed once all entries are included.
inline constexpr std::string_view kRollUpTables = R"sql(
CREATE TABLE rollup_cut (
  shard {int} NOT NULL,
  workspace {text} NOT NULL,
  sequence {int} NOT NULL,
  base_us {int} NOT NULL,
  PRIMARY KEY (shard, workspace)
) {hot};
CREATE TABLE workspace_quarter {workspace_roll_up};
CREATE TABLE workspace_day {workspace_roll_up};
CREATE TABLE key_spend_day (
  shard {int} NOT NULL,
  workspace {text} NOT NULL,
  period {int} NOT NULL,
  key_id {text} NOT NULL,
  charged {int} NOT NULL,
  PRIMARY KEY (shard, workspace, period, key_id)
) {hot};
CREATE TABLE key_spend_month (
  shard {int} NOT NULL,
  workspace {text} NOT NULL,
  period {int} NOT NULL,
  key_id {text} NOT NULL,
  charged {int} NOT NULL,
  PRIMARY KEY (shard, workspace, period, key_id)
) {keyed};
CREATE INDEX key_spend_most ON key_spend_month (shard, workspace, period, charged);
CREATE TABLE statement_month (
  shard {int} NOT NULL,
  workspace {text} NOT NULL,
  month {int} NOT NULL,
  kind {int} NOT NULL,
  amount {int} NOT NULL,
  PRIMARY KEY (shard, workspace, month, kind)
) {hot};
CREATE TABLE statement_usage (
  shard {int} NOT NULL,
  workspace {text} NOT NULL,
  month {int} NOT NULL,
  key_id {text} NOT NULL,
  model {text} NOT NULL,
  requests {int} NOT NULL,
  amount {int} NOT NULL,
  PRIMARY KEY (shard, workspace, month, key_id, model)
) {hot};
CREATE TABLE expired_charge (
  shard {int} NOT NULL,
  workspace {text} NOT NULL,
  id {blob} NOT NULL,
  at_us {int} NOT NULL,
  PRIMARY KEY (shard, workspace, id)
) {keyed};
CREATE TABLE rollup_stale (
  shard {int} NOT NULL,
  workspace {text} NOT NULL,
  period {int} NOT NULL,
  model {text} NOT NULL,
  PRIMARY KEY (shard, workspace, period, model)
) {keyed};
)sql";

// statement_month.receivable: amounts that the entries added to what the workspace owes.
// rollup_cut.receivables: newest entry that it contains. Steps of the previous version move
// `sequence` alone.
inline constexpr std::string_view kReceivableColumns = R"sql(
ALTER TABLE statement_month ADD COLUMN receivable {int} NOT NULL DEFAULT 0;
ALTER TABLE rollup_cut ADD COLUMN receivables {int} NOT NULL DEFAULT 0;
)sql";

// {workspace_roll_up}
inline constexpr std::string_view kWorkspaceRollUp = R"sql((
  shard {int} NOT NULL,
  workspace {text} NOT NULL,
  period {int} NOT NULL,
  model {text} NOT NULL,
  requests {int} NOT NULL,
  free_requests {int} NOT NULL,
  prompt {int} NOT NULL,
  cached {int} NOT NULL,
  cache_write {int} NOT NULL,
  completion {int} NOT NULL,
  reasoning {int} NOT NULL,
  charged {int} NOT NULL,
  overrun {int} NOT NULL,
  PRIMARY KEY (shard, workspace, period, model)
) {hot})sql";

// All these tables, keyed by shard and workspace.
inline constexpr std::string_view kRollUpNames[] = {
    "rollup_cut",      "workspace_quarter", "workspace_day",  "key_spend_day", "key_spend_month",
    "statement_month", "statement_usage",   "expired_charge", "rollup_stale"};

}  // namespace tollgate::billing
