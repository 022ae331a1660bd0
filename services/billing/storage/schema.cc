#include "services/billing/storage/schema.h"

#include "common/base/clock.h"

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

constexpr sql::Migration kMigrations[] = {{1, "ledger", kFirst}};

// 128 bits as decimal digits: no SQL integer is wide enough.
std::string Digits(Int128 value) {
  std::string text;
  do {
    text.insert(text.begin(), static_cast<char>('0' + static_cast<int>(value % 10)));
    value /= 10;
  } while (value > 0);
  return text;
}

}  // namespace

std::span<const sql::Migration> Migrations() { return kMigrations; }

Wallet ReadWallet(const sql::Row& row) {
  Wallet wallet;
  wallet.workspace = row.Text(0);
  wallet.paid_nano_usd = row.Int(1);
  wallet.granted_nano_usd = row.Int(2);
  wallet.held_nano_usd = row.Int(3);
  wallet.open_holds = row.Int(4);
  wallet.cap_nano_usd = row.OptionalInt(5);
  wallet.frozen = static_cast<Freeze>(row.Int(6));
  wallet.sequence = row.Int(7);
  wallet.head = row.Text(8);
  wallet.clock_us = row.Int(9);
  return wallet;
}

Month ReadMonth(const sql::Row& row) {
  return {row.Text(1), static_cast<int32_t>(row.Int(2)), row.Int(3), row.Int(4)};
}

Hold ReadHold(const sql::Row& row) {
  Hold hold;
  hold.id = Id::FromBytes(row.Bytes(0)).value_or(Id());
  hold.workspace = row.Text(1);
  hold.state = static_cast<HoldState>(row.Int(2));
  hold.key_id = row.Text(3);
  hold.model = row.Text(4);
  hold.rates = {row.Int(5), row.Int(6)};
  hold.price_version = row.Int(7);
  hold.prompt_bound = row.Int(8);
  hold.output_bound = row.Int(9);
  hold.month = static_cast<int32_t>(row.Int(10));
  hold.cap_nano_usd = row.OptionalInt(11);
  hold.first_authorized_nano_usd = row.Int(12);
  hold.authorized_nano_usd = row.Int(13);
  hold.created_us = row.Int(14);
  hold.expires_us = row.Int(15);
  hold.sequence = row.Int(16);
  hold.usage = {row.Int(17), row.Int(18), row.Int(19), row.Int(20), row.Int(21)};
  hold.outcome = static_cast<Outcome>(row.Int(22));
  hold.cut_by_credit = row.Int(23) != 0;
  hold.estimated = row.Int(24) != 0;
  hold.engine = row.Text(25);
  hold.charged_nano_usd = row.Int(26);
  hold.charged_granted_nano_usd = row.Int(27);
  hold.overrun_nano_usd = row.Int(28);
  hold.closed_us = row.Int(29);
  return hold;
}

Entry ReadEntry(const sql::Row& row) {
  Entry entry;
  entry.workspace = row.Text(0);
  entry.sequence = row.Int(1);
  entry.kind = static_cast<EntryKind>(row.Int(2));
  entry.request = row.Text(3);
  entry.debit = static_cast<Account>(row.Int(4));
  entry.credit = static_cast<Account>(row.Int(5));
  entry.amount_nano_usd = row.Int(6);
  entry.month = static_cast<int32_t>(row.Int(7));
  entry.at_us = row.Int(8);
  entry.memo = row.Text(9);
  entry.hash = row.Text(10);
  return entry;
}

Command ReadCommand(const sql::Row& row) {
  return {row.Text(1), row.Text(2),     static_cast<CommandKind>(row.Int(3)),
          row.Int(4),  row.Int(5) != 0, row.OptionalInt(6),
          row.Int(7)};
}

std::string_view Cells::Keep(std::string text) {
  kept_.push_back(std::make_unique<std::string>(std::move(text)));
  return *kept_.back();
}

void Cells::Add(const Wallet& w) {
  cells_.insert(cells_.end(), {w.workspace, w.paid_nano_usd, w.granted_nano_usd, w.held_nano_usd,
                               w.open_holds, w.cap_nano_usd, static_cast<int64_t>(w.frozen),
                               w.sequence, sql::Param::Blob(w.head), w.clock_us});
}

void Cells::Add(const Month& m) {
  cells_.insert(cells_.end(), {Keep(MonthKey(m.workspace, m.month)), m.workspace, m.month,
                               m.spent_nano_usd, m.held_nano_usd});
}

void Cells::Add(const Hold& h) {
  cells_.insert(cells_.end(), {sql::Param::Blob(Keep(h.id.ToBytes())),
                               h.workspace,
                               static_cast<int>(h.state),
                               h.key_id,
                               h.model,
                               h.rates.input_pico_usd,
                               h.rates.output_pico_usd,
                               h.price_version,
                               h.prompt_bound,
                               h.output_bound,
                               h.month,
                               h.cap_nano_usd,
                               h.first_authorized_nano_usd,
                               h.authorized_nano_usd,
                               h.created_us,
                               h.expires_us,
                               h.sequence,
                               h.usage.prompt,
                               h.usage.cached,
                               h.usage.cache_write,
                               h.usage.completion,
                               h.usage.reasoning,
                               static_cast<int>(h.outcome),
                               h.cut_by_credit,
                               h.estimated,
                               h.engine,
                               h.charged_nano_usd,
                               h.charged_granted_nano_usd,
                               h.overrun_nano_usd,
                               h.closed_us});
}

void Cells::Add(const Entry& e) {
  cells_.insert(cells_.end(),
                {e.workspace, e.sequence, static_cast<int>(e.kind), sql::Param::Blob(e.request),
                 static_cast<int>(e.debit), static_cast<int>(e.credit), e.amount_nano_usd, e.month,
                 e.at_us, e.memo, sql::Param::Blob(e.hash)});
}

void Cells::Add(const Command& c) {
  cells_.insert(cells_.end(),
                {Keep(CommandKey(c.workspace, c.command_id)), c.workspace, c.command_id,
                 static_cast<int>(c.kind), c.amount_nano_usd, c.granted, c.cap_nano_usd, c.at_us});
}

void Cells::AddUsage(const Hold& h) {
  const Usage usage = h.BillableUsage();
  cells_.insert(cells_.end(), {sql::Param::Blob(Keep(h.id.ToBytes())),
                               h.workspace,
                               h.key_id,
                               h.model,
                               h.engine,
                               h.month,
                               UtcDay(h.created_us),
                               h.created_us,
                               h.closed_us,
                               usage.prompt,
                               usage.cached,
                               usage.cache_write,
                               usage.completion,
                               usage.reasoning,
                               h.rates.input_pico_usd,
                               h.rates.output_pico_usd,
                               h.price_version,
                               Keep(Digits(h.CostPicoUsd())),
                               h.charged_nano_usd,
                               h.overrun_nano_usd,
                               static_cast<int>(h.state),
                               static_cast<int>(h.outcome),
                               h.cut_by_credit,
                               h.estimated});
}

}  // namespace tollgate::billing
