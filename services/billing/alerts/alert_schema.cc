#include "services/billing/alerts/alert_schema.h"

namespace tollgate::billing::alerts {
namespace {

constexpr char kFirst[] = R"sql(
CREATE TABLE alert_setting (
  shard {int} NOT NULL,
  workspace {text} NOT NULL,
  emails {text} NOT NULL,
  low_balance {int} NOT NULL,
  cap_percents {text} NOT NULL,
  reload_paused {int} NOT NULL,
  actor {text} NOT NULL,
  updated_us {int} NOT NULL,
  PRIMARY KEY (shard, workspace),
  CHECK (low_balance >= 0)
) {keyed};
CREATE TABLE alert_webhook (
  shard {int} NOT NULL,
  workspace {text} NOT NULL,
  id {text} NOT NULL,
  url {text} NOT NULL,
  secret {text} NOT NULL,
  created_us {int} NOT NULL,
  PRIMARY KEY (shard, workspace, id)
) {keyed};
CREATE TABLE alert_state (
  shard {int} NOT NULL,
  workspace {text} NOT NULL,
  kind {int} NOT NULL,
  level {int} NOT NULL,
  fired {int} NOT NULL,
  month {int} NOT NULL,
  mark {int} NOT NULL,
  version {int} NOT NULL,
  changed_us {int} NOT NULL,
  PRIMARY KEY (shard, workspace, kind, level)
) {hot};
CREATE INDEX alert_books ON alert_state (workspace) WHERE kind = 5 AND fired = 1;
CREATE TABLE alert_outbox (
  shard {int} NOT NULL,
  workspace {text} NOT NULL,
  id {text} NOT NULL,
  notice {text} NOT NULL,
  kind {text} NOT NULL,
  payload {text} NOT NULL,
  channel {int} NOT NULL,
  target {text} NOT NULL,
  attempts {int} NOT NULL,
  next_us {int} NOT NULL,
  state {int} NOT NULL,
  last_error {text} NOT NULL,
  created_us {int} NOT NULL,
  PRIMARY KEY (shard, workspace, id)
) {hot};
CREATE INDEX alert_outbox_due ON alert_outbox (next_us) WHERE state = 1;
CREATE INDEX alert_outbox_created ON alert_outbox (created_us);
)sql";

constexpr sql::Migration kMigrations[] = {{1, "alerts", kFirst}};

}  // namespace

std::span<const sql::Migration> AlertMigrations() { return kMigrations; }

}  // namespace tollgate::billing::alerts
