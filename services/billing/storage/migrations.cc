// The ledger's tables as migrations. A released migration is never changed.
#include "common/base/clock.h"
#include "common/base/ledger_shard.h"
#include "common/base/try.h"
#include "services/billing/storage/archive_tables.h"
#include "services/billing/storage/audit_outbox.h"
#include "services/billing/storage/candidates.h"
#include "services/billing/storage/idempotency_table.h"
#include "services/billing/storage/leases.h"
#include "services/billing/storage/quota_keys.h"
#include "services/billing/storage/rollup_tables.h"
#include "services/billing/storage/schema.h"
#include "services/billing/storage/statement_closes.h"

namespace tollgate::billing {
namespace {

constexpr std::string_view kFirst = R"sql(
CREATE TABLE wallet (
  workspace {text} PRIMARY KEY,
  paid {int} NOT NULL,
  granted {int} NOT NULL,
  held {int} NOT NULL,
  open_holds {int} NOT NULL,
  cap {int},
  frozen {int} NOT NULL,
  sequence {int} NOT NULL,
  head {blob} NOT NULL,
  clock_us {int} NOT NULL,
  CHECK (paid >= 0 AND granted >= 0 AND held >= 0 AND held <= paid + granted)
) {hot};
CREATE TABLE cap_month (
  id {text} PRIMARY KEY,
  workspace {text} NOT NULL,
  month {int} NOT NULL,
  spent {int} NOT NULL,
  held {int} NOT NULL,
  CHECK (spent >= 0 AND held >= 0)
) {hot};
CREATE TABLE hold (
  id {blob} PRIMARY KEY,
  workspace {text} NOT NULL,
  state {int} NOT NULL,
  key_id {text} NOT NULL,
  model {text} NOT NULL,
  input_pico {int} NOT NULL,
  output_pico {int} NOT NULL,
  price_version {int} NOT NULL,
  prompt_bound {int} NOT NULL,
  output_bound {int} NOT NULL,
  month {int} NOT NULL,
  cap {int},
  first_authorized {int} NOT NULL,
  authorized {int} NOT NULL,
  created_us {int} NOT NULL,
  expires_us {int} NOT NULL,
  sequence {int} NOT NULL,
  prompt {int} NOT NULL,
  cached {int} NOT NULL,
  cache_write {int} NOT NULL,
  completion {int} NOT NULL,
  reasoning {int} NOT NULL,
  outcome {int} NOT NULL,
  cut_by_credit {int} NOT NULL,
  estimated {int} NOT NULL,
  engine {text} NOT NULL,
  charged {int} NOT NULL,
  charged_granted {int} NOT NULL,
  overrun {int} NOT NULL,
  closed_us {int} NOT NULL
) {hot};
CREATE INDEX hold_open ON hold (expires_us) WHERE state = 1;
CREATE TABLE entry (
  workspace {text} NOT NULL,
  sequence {int} NOT NULL,
  kind {int} NOT NULL,
  request {blob} NOT NULL,
  debit {int} NOT NULL,
  credit {int} NOT NULL,
  amount {int} NOT NULL,
  month {int} NOT NULL,
  at_us {int} NOT NULL,
  memo {text} NOT NULL,
  hash {blob} NOT NULL,
  PRIMARY KEY (workspace, sequence),
  CHECK (amount >= 0)
) {keyed};
CREATE TABLE command (
  id {text} PRIMARY KEY,
  workspace {text} NOT NULL,
  command {text} NOT NULL,
  kind {int} NOT NULL,
  amount {int} NOT NULL,
  granted {int} NOT NULL,
  cap {int},
  at_us {int} NOT NULL
) {keyed};
CREATE TABLE usage_record (
  id {blob} PRIMARY KEY,
  workspace {text} NOT NULL,
  key_id {text} NOT NULL,
  model {text} NOT NULL,
  engine {text} NOT NULL,
  month {int} NOT NULL,
  day {int} NOT NULL,
  admitted_us {int} NOT NULL,
  closed_us {int} NOT NULL,
  prompt {int} NOT NULL,
  cached {int} NOT NULL,
  cache_write {int} NOT NULL,
  completion {int} NOT NULL,
  reasoning {int} NOT NULL,
  input_pico {int} NOT NULL,
  output_pico {int} NOT NULL,
  price_version {int} NOT NULL,
  cost_pico {text} NOT NULL,
  charged {int} NOT NULL,
  overrun {int} NOT NULL,
  state {int} NOT NULL,
  outcome {int} NOT NULL,
  cut_by_credit {int} NOT NULL,
  estimated {int} NOT NULL
) {keyed};
CREATE INDEX usage_of_key ON usage_record (workspace, key_id, admitted_us);
)sql";

// Puts the ledger shard first in every key (decision 49), partitions by month (decision 54), adds
// roll-ups (decision 53) and what receipts and corrections need (decision 55). ShardRows fills the
// tables.
constexpr std::string_view kSecond = R"sql(
DROP INDEX hold_open;
DROP INDEX usage_of_key;
ALTER TABLE wallet RENAME TO old_wallet;
ALTER TABLE cap_month RENAME TO old_cap_month;
ALTER TABLE hold RENAME TO old_hold;
ALTER TABLE entry RENAME TO old_entry;
ALTER TABLE command RENAME TO old_command;
ALTER TABLE usage_record RENAME TO old_usage_record;
CREATE TABLE wallet (
  shard {int} NOT NULL,
  workspace {text} NOT NULL,
  paid {int} NOT NULL,
  granted {int} NOT NULL,
  held {int} NOT NULL,
  receivable {int} NOT NULL,
  open_holds {int} NOT NULL,
  cap {int},
  frozen {int} NOT NULL,
  sequence {int} NOT NULL,
  head {blob} NOT NULL,
  clock_us {int} NOT NULL,
  PRIMARY KEY (shard, workspace),
  CHECK (paid >= 0 AND granted >= 0 AND held >= 0 AND held <= paid + granted AND receivable >= 0)
) {hot};
CREATE TABLE cap_month (
  shard {int} NOT NULL,
  workspace {text} NOT NULL,
  month {int} NOT NULL,
  spent {int} NOT NULL,
  held {int} NOT NULL,
  PRIMARY KEY (shard, workspace, month),
  CHECK (spent >= 0 AND held >= 0)
) {hot};
CREATE TABLE key_month (
  shard {int} NOT NULL,
  workspace {text} NOT NULL,
  key_id {text} NOT NULL,
  month {int} NOT NULL,
  spent {int} NOT NULL,
  held {int} NOT NULL,
  PRIMARY KEY (shard, workspace, key_id, month)
) {hot};
CREATE TABLE hold (
  shard {int} NOT NULL,
  id {blob} NOT NULL,
  workspace {text} NOT NULL,
  state {int} NOT NULL,
  key_id {text} NOT NULL,
  model {text} NOT NULL,
  input_pico {int} NOT NULL,
  output_pico {int} NOT NULL,
  price_version {int} NOT NULL,
  prompt_bound {int} NOT NULL,
  output_bound {int} NOT NULL,
  month {int} NOT NULL,
  cap {int},
  key_quota {int},
  surface {int} NOT NULL,
  streamed {int} NOT NULL,
  client_request_id {text} NOT NULL,
  idempotency_key_digest {blob} NOT NULL,
  attempt {int} NOT NULL,
  first_authorized {int} NOT NULL,
  authorized {int} NOT NULL,
  created_us {int} NOT NULL,
  expires_us {int} NOT NULL,
  sequence {int} NOT NULL,
  prompt {int} NOT NULL,
  cached {int} NOT NULL,
  cache_write {int} NOT NULL,
  completion {int} NOT NULL,
  reasoning {int} NOT NULL,
  outcome {int} NOT NULL,
  cut_by_credit {int} NOT NULL,
  estimated {int} NOT NULL,
  engine {text} NOT NULL,
  charged {int} NOT NULL,
  charged_granted {int} NOT NULL,
  overrun {int} NOT NULL,
  closed_us {int} NOT NULL,
  first_token_us {int} NOT NULL,
  PRIMARY KEY (shard, id)
) {by_id};
-- Without the expiry, so that a heartbeat changes no indexed column and stays in its page.
CREATE INDEX hold_open ON hold (shard, id) WHERE state = 1;
CREATE TABLE entry (
  shard {int} NOT NULL,
  workspace {text} NOT NULL,
  sequence {int} NOT NULL,
  kind {int} NOT NULL,
  request {blob} NOT NULL,
  debit {int} NOT NULL,
  credit {int} NOT NULL,
  amount {int} NOT NULL,
  month {int} NOT NULL,
  at_us {int} NOT NULL,
  memo {text} NOT NULL,
  detail {blob} NOT NULL,
  hash {blob} NOT NULL,
  PRIMARY KEY (shard, workspace, sequence, at_us),
  CHECK (amount >= 0)
) {by_time};
CREATE TABLE command (
  shard {int} NOT NULL,
  workspace {text} NOT NULL,
  id {text} NOT NULL,
  kind {int} NOT NULL,
  amount {int} NOT NULL,
  granted {int} NOT NULL,
  cap {int},
  at_us {int} NOT NULL,
  state {int} NOT NULL,
  actor {text} NOT NULL,
  reason {text} NOT NULL,
  reference {text} NOT NULL,
  decided_by {text} NOT NULL,
  decided_us {int} NOT NULL,
  PRIMARY KEY (shard, workspace, id)
) {keyed};
CREATE TABLE usage_record (
  shard {int} NOT NULL,
  id {blob} NOT NULL,
  workspace {text} NOT NULL,
  key_id {text} NOT NULL,
  model {text} NOT NULL,
  engine {text} NOT NULL,
  surface {int} NOT NULL,
  streamed {int} NOT NULL,
  client_request_id {text} NOT NULL,
  month {int} NOT NULL,
  day {int} NOT NULL,
  admitted_us {int} NOT NULL,
  closed_us {int} NOT NULL,
  first_token_us {int} NOT NULL,
  prompt {int} NOT NULL,
  cached {int} NOT NULL,
  cache_write {int} NOT NULL,
  completion {int} NOT NULL,
  reasoning {int} NOT NULL,
  input_pico {int} NOT NULL,
  output_pico {int} NOT NULL,
  price_version {int} NOT NULL,
  cost_pico {text} NOT NULL,
  charged {int} NOT NULL,
  overrun {int} NOT NULL,
  state {int} NOT NULL,
  outcome {int} NOT NULL,
  cut_by_credit {int} NOT NULL,
  estimated {int} NOT NULL,
  PRIMARY KEY (shard, id)
) {by_id};
CREATE INDEX usage_of_key ON usage_record (shard, workspace, key_id, admitted_us);
CREATE INDEX usage_of_client ON usage_record (shard, workspace, client_request_id)
  WHERE client_request_id <> '';
CREATE TABLE usage_quarter {roll_up};
CREATE TABLE usage_day {roll_up};
CREATE TABLE dead_letter (
  shard {int} NOT NULL,
  id {blob} NOT NULL,
  number {int} NOT NULL,
  workspace {text} NOT NULL,
  at_us {int} NOT NULL,
  reason {int} NOT NULL,
  operation {blob} NOT NULL,
  state {int} NOT NULL,
  resolved_us {int} NOT NULL,
  actor {text} NOT NULL,
  note {text} NOT NULL,
  PRIMARY KEY (shard, id, number)
) {keyed};
CREATE INDEX dead_letter_open ON dead_letter (shard, at_us) WHERE state = 1;
CREATE TABLE shard_of (
  workspace {text} PRIMARY KEY,
  shard {int} NOT NULL
) {keyed};
)sql";

constexpr std::string_view kMoveRows = R"sql(
INSERT INTO wallet SELECT s.shard, t.workspace, paid, granted, held, 0, open_holds, cap, frozen,
  sequence, head, clock_us FROM old_wallet t JOIN shard_of s ON s.workspace = t.workspace;
INSERT INTO cap_month SELECT s.shard, t.workspace, month, spent, held
  FROM old_cap_month t JOIN shard_of s ON s.workspace = t.workspace;
INSERT INTO hold SELECT s.shard, id, t.workspace, state, key_id, model, input_pico, output_pico,
  price_version, prompt_bound, output_bound, month, cap, NULL, 0,
  CASE WHEN state = 1 THEN 1 ELSE 0 END, '', {empty}, 0,
  first_authorized, authorized, created_us, expires_us, sequence, prompt, cached, cache_write,
  completion, reasoning, outcome, cut_by_credit, estimated, engine, charged, charged_granted,
  overrun, closed_us, 0 FROM old_hold t JOIN shard_of s ON s.workspace = t.workspace;
INSERT INTO entry SELECT s.shard, t.workspace, sequence, kind, request, debit, credit, amount, month,
  at_us, memo, {empty}, hash FROM old_entry t JOIN shard_of s ON s.workspace = t.workspace;
INSERT INTO command SELECT s.shard, t.workspace, command, kind, amount, granted, cap, at_us, 1, '',
  '', '', '', 0 FROM old_command t JOIN shard_of s ON s.workspace = t.workspace;
INSERT INTO usage_record SELECT s.shard, id, t.workspace, key_id, model, engine, 0, 0, '', month,
  day, admitted_us, closed_us, 0, prompt, cached, cache_write, completion, reasoning, input_pico,
  output_pico, price_version, cost_pico, charged, overrun, state, outcome, cut_by_credit, estimated
  FROM old_usage_record t JOIN shard_of s ON s.workspace = t.workspace;
INSERT INTO usage_quarter SELECT shard, workspace, key_id, model, admitted_us / 900000000,
  {sums} FROM usage_record GROUP BY shard, workspace, key_id, model, admitted_us / 900000000;
INSERT INTO usage_day SELECT shard, workspace, key_id, model, day,
  {sums} FROM usage_record GROUP BY shard, workspace, key_id, model, day;
DROP TABLE old_wallet;
DROP TABLE old_cap_month;
DROP TABLE old_hold;
DROP TABLE old_entry;
DROP TABLE old_command;
DROP TABLE old_usage_record;
DROP TABLE shard_of;
)sql";

// {roll_up}: the columns of usage_quarter and usage_day.
constexpr std::string_view kRollUp = R"sql((
  shard {int} NOT NULL,
  workspace {text} NOT NULL,
  key_id {text} NOT NULL,
  model {text} NOT NULL,
  period {int} NOT NULL,
  requests {int} NOT NULL,
  free_requests {int} NOT NULL,
  prompt {int} NOT NULL,
  cached {int} NOT NULL,
  cache_write {int} NOT NULL,
  completion {int} NOT NULL,
  reasoning {int} NOT NULL,
  charged {int} NOT NULL,
  overrun {int} NOT NULL,
  PRIMARY KEY (shard, workspace, key_id, model, period)
) {hot})sql";

constexpr std::string_view kSums =
    "CAST(sum(CASE WHEN prompt + completion > 0 THEN 1 ELSE 0 END) AS BIGINT),"
    " CAST(sum(CASE WHEN prompt + completion > 0 THEN 0 ELSE 1 END) AS BIGINT),"
    " CAST(sum(prompt) AS BIGINT), CAST(sum(cached) AS BIGINT), CAST(sum(cache_write) AS BIGINT),"
    " CAST(sum(completion) AS BIGINT), CAST(sum(reasoning) AS BIGINT),"
    " CAST(sum(charged) AS BIGINT), CAST(sum(overrun) AS BIGINT)";

std::string With(std::string_view script, std::string_view word, std::string_view text) {
  std::string made(script);
  for (size_t at = made.find(word); at != std::string::npos; at = made.find(word)) {
    made.replace(at, word.size(), text);
  }
  return made;
}

sql::SqlResult<void> ShardRows(sql::Connection& db) {
  std::vector<std::string> workspaces;
  TRY(
      db.Query("SELECT workspace FROM old_wallet UNION SELECT workspace FROM old_hold UNION"
               " SELECT workspace FROM old_entry UNION SELECT workspace FROM old_command UNION"
               " SELECT workspace FROM old_cap_month UNION SELECT workspace FROM old_usage_record",
               {}, [&](const sql::Row& row) { workspaces.push_back(row.Text(0)); }));
  std::vector<sql::Param> cells;
  for (const std::string& workspace : workspaces) {
    cells.insert(cells.end(), {workspace, LedgerShard(workspace)});
  }
  TRY(db.ExecuteRows("INSERT INTO shard_of (workspace, shard) VALUES", 2, cells));
  int32_t since = 0;
  TRY(db.Query("SELECT CAST(coalesce(min(at_us), 0) AS BIGINT) FROM old_entry", {},
               [&](const sql::Row& row) {
                 if (row.Int(0) > 0) since = UtcMonth(row.Int(0));
               }));
  TRY(EnsurePartitions(db, SystemClock::Get().WallUs(), since));
  const char* empty = db.dialect() == sql::Dialect::kSqlite ? "x''" : "''::bytea";
  return db.ExecuteScript(With(With(kMoveRows, "{sums}", kSums), "{empty}", empty));
}

}  // namespace

std::span<const sql::Migration> Migrations() {
  static const std::string second = With(kSecond, "{roll_up}", kRollUp);
  // The previous version writes no rows here: they are built from its entries when billing runs.
  static const std::string roll_ups = With(kRollUpTables, "{workspace_roll_up}", kWorkspaceRollUp);
  static const sql::Migration migrations[] = {
      {1, "ledger", kFirst},
      {2, "shards, partitions, roll-ups, corrections", second, ShardRows},
      {3, "archive", kArchiveTables},
      {4, "idempotency keys", kIdempotencyTable},
      {5, "runs of the archive, frozen wallets", kArchiveRuns},
      {6, "fall-back models", kCandidateColumns},
      {7, "roll-ups that follow the entries", roll_ups},
      {8, "leases", kLeaseTable},
      {9, "outbox of audit entries", kAuditOutboxTable},
      {10, "digests of archived states", kArchiveDigests},
      {11, "quotas of rotated keys", kQuotaKeysColumn},
      {12, "what workspaces owe, by month", kReceivableColumns},
      {13, "closed months of statements", kStatementCloseTable}};
  return migrations;
}

}  // namespace tollgate::billing
