#include "services/billing/payments/payment_schema.h"

namespace tollgate::billing::payments {
namespace {

constexpr std::string_view kFirst = R"sql(
CREATE TABLE payment_head (
  shard {int} NOT NULL,
  workspace {text} NOT NULL,
  sequence {int} NOT NULL,
  head {blob} NOT NULL,
  PRIMARY KEY (shard, workspace)
) {hot};
CREATE TABLE payment (
  shard {int} NOT NULL,
  workspace {text} NOT NULL,
  id {text} NOT NULL,
  provider {text} NOT NULL,
  state {int} NOT NULL,
  reload {int} NOT NULL,
  amount {int} NOT NULL,
  customer {text} NOT NULL,
  method {text} NOT NULL,
  provider_id {text} NOT NULL,
  checkout_id {text} NOT NULL,
  checkout_url {text} NOT NULL,
  reason {text} NOT NULL,
  reference {text} NOT NULL,
  actor {text} NOT NULL,
  credited {int} NOT NULL,
  refunded {int} NOT NULL,
  disputed {int} NOT NULL,
  created_us {int} NOT NULL,
  updated_us {int} NOT NULL,
  sent_us {int} NOT NULL,
  check_us {int} NOT NULL,
  attempts {int} NOT NULL,
  PRIMARY KEY (shard, workspace, id),
  CHECK (amount > 0 AND refunded >= 0 AND refunded <= amount)
) {hot};
CREATE INDEX payment_newest ON payment (shard, workspace, created_us, id);
CREATE INDEX payment_due ON payment (check_us) WHERE check_us > 0;
CREATE INDEX payment_of_provider ON payment (provider_id) WHERE provider_id <> '';
CREATE INDEX payment_created ON payment (created_us);
CREATE TABLE payment_method (
  shard {int} NOT NULL,
  workspace {text} NOT NULL,
  id {text} NOT NULL,
  provider {text} NOT NULL,
  brand {text} NOT NULL,
  last4 {text} NOT NULL,
  expiry {text} NOT NULL,
  created_us {int} NOT NULL,
  PRIMARY KEY (shard, workspace, id)
) {keyed};
CREATE TABLE provider_customer (
  shard {int} NOT NULL,
  workspace {text} NOT NULL,
  provider {text} NOT NULL,
  customer {text} NOT NULL,
  PRIMARY KEY (shard, workspace, provider)
) {keyed};
CREATE TABLE auto_reload (
  shard {int} NOT NULL,
  workspace {text} NOT NULL,
  enabled {int} NOT NULL,
  threshold {int} NOT NULL,
  amount {int} NOT NULL,
  ceiling {int} NOT NULL,
  state {int} NOT NULL,
  pause_reason {text} NOT NULL,
  reload_id {text} NOT NULL,
  next_us {int} NOT NULL,
  declines {int} NOT NULL,
  month {int} NOT NULL,
  month_charged {int} NOT NULL,
  version {int} NOT NULL,
  actor {text} NOT NULL,
  updated_us {int} NOT NULL,
  PRIMARY KEY (shard, workspace)
) {hot};
CREATE INDEX auto_reload_enabled ON auto_reload (workspace) WHERE enabled = 1;
CREATE TABLE payment_refund (
  shard {int} NOT NULL,
  workspace {text} NOT NULL,
  id {text} NOT NULL,
  payment {text} NOT NULL,
  state {int} NOT NULL,
  amount {int} NOT NULL,
  provider_id {text} NOT NULL,
  reason {text} NOT NULL,
  actor {text} NOT NULL,
  created_us {int} NOT NULL,
  updated_us {int} NOT NULL,
  check_us {int} NOT NULL,
  attempts {int} NOT NULL,
  PRIMARY KEY (shard, workspace, id)
) {hot};
CREATE INDEX payment_refund_due ON payment_refund (check_us) WHERE check_us > 0;
CREATE TABLE provider_event (
  shard {int} NOT NULL,
  workspace {text} NOT NULL,
  id {text} NOT NULL,
  type {text} NOT NULL,
  object {text} NOT NULL,
  payment {text} NOT NULL,
  received_us {int} NOT NULL,
  check_us {int} NOT NULL,
  attempts {int} NOT NULL,
  PRIMARY KEY (shard, workspace, id)
) {hot};
CREATE INDEX provider_event_due ON provider_event (check_us) WHERE check_us > 0;
CREATE TABLE payment_event (
  shard {int} NOT NULL,
  workspace {text} NOT NULL,
  sequence {int} NOT NULL,
  at_us {int} NOT NULL,
  subject {text} NOT NULL,
  from_state {text} NOT NULL,
  to_state {text} NOT NULL,
  amount {int} NOT NULL,
  actor {text} NOT NULL,
  reason {text} NOT NULL,
  hash {blob} NOT NULL,
  PRIMARY KEY (shard, workspace, sequence)
) {keyed};
)sql";

// Keeps deleted cards and stores a state for each dispute.
constexpr std::string_view kSecond = R"sql(
ALTER TABLE payment_method ADD COLUMN deleted_us {int} NOT NULL DEFAULT 0;
CREATE TABLE payment_dispute (
  shard {int} NOT NULL,
  workspace {text} NOT NULL,
  id {text} NOT NULL,
  payment {text} NOT NULL,
  state {int} NOT NULL,
  amount {int} NOT NULL,
  taken {int} NOT NULL,
  PRIMARY KEY (shard, workspace, id)
) {keyed};
UPDATE payment_refund SET check_us = created_us + 86400000000
  WHERE state = 3 AND check_us = 0 AND provider_id <> '' AND provider_id NOT LIKE 'manual-%';
)sql";

// When a charge may be sent (docs/design/charging.md). Rows from before count as confirmed now.
constexpr std::string_view kThird = R"sql(
ALTER TABLE payment ADD COLUMN last_sent_us {int} NOT NULL DEFAULT 0;
ALTER TABLE payment ADD COLUMN cancel_us {int} NOT NULL DEFAULT 0;
ALTER TABLE auto_reload ADD COLUMN confirmed_us {int} NOT NULL DEFAULT 0;
UPDATE payment SET last_sent_us = updated_us WHERE sent_us > 0;
UPDATE auto_reload SET confirmed_us = updated_us;
)sql";

// A row says that the database was restored and that no reconciliation has run since: auto-reload
// waits. lost_since_us: the restored database ends there. Disputes before this version have no
// times.
constexpr std::string_view kFourth = R"sql(
CREATE TABLE payment_restore (
  id {int} PRIMARY KEY,
  restored_us {int} NOT NULL,
  lost_since_us {int} NOT NULL
) {keyed};
ALTER TABLE payment_dispute ADD COLUMN fraud_warning {int} NOT NULL DEFAULT 0;
ALTER TABLE payment_dispute ADD COLUMN due_us {int} NOT NULL DEFAULT 0;
ALTER TABLE payment_dispute ADD COLUMN opened_us {int} NOT NULL DEFAULT 0;
ALTER TABLE payment_dispute ADD COLUMN closed_us {int} NOT NULL DEFAULT 0;
UPDATE payment_dispute SET fraud_warning = 1 WHERE id LIKE 'issfr%';
)sql";

// Who confirmed a bank transfer that waits for a second person.
constexpr std::string_view kFifth = R"sql(
ALTER TABLE payment ADD COLUMN confirmed_by {text} NOT NULL DEFAULT '';
)sql";

// A charge may be sent under several idempotency keys; a second charge is given back.
constexpr std::string_view kSixth = R"sql(
ALTER TABLE payment ADD COLUMN idempotency_keys {int} NOT NULL DEFAULT 1;
ALTER TABLE payment ADD COLUMN failed_us {int} NOT NULL DEFAULT 0;
ALTER TABLE payment ADD COLUMN watch_us {int} NOT NULL DEFAULT 0;
ALTER TABLE payment_refund ADD COLUMN extra_charge {text} NOT NULL DEFAULT '';
)sql";

// Which card is charged, and where the customer confirms a charge to the bank.
constexpr std::string_view kSeventh = R"sql(
ALTER TABLE payment_method ADD COLUMN chosen_us {int} NOT NULL DEFAULT 0;
ALTER TABLE payment_method ADD COLUMN refused {text} NOT NULL DEFAULT '';
ALTER TABLE auto_reload ADD COLUMN confirm_page {text} NOT NULL DEFAULT '';
)sql";

constexpr sql::Migration kMigrations[] = {
    {1, "payments", kFirst}, {2, "disputes", kSecond},     {3, "charging", kThird},
    {4, "restore", kFourth}, {5, "second person", kFifth}, {6, "retried charges", kSixth},
    {7, "cards", kSeventh}};

}  // namespace

std::span<const sql::Migration> PaymentMigrations() { return kMigrations; }

}  // namespace tollgate::billing::payments
