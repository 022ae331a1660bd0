#include "services/billing/storage/schema.h"

#include "common/base/clock.h"
#include "common/base/ledger_shard.h"
#include "services/billing/storage/candidates.h"
#include "services/billing/storage/quota_keys.h"

namespace tollgate::billing {
namespace {

// 128-bit values as decimal digits: SQL integers are too small.
std::string Digits(Int128 value) {
  std::string text;
  do {
    text.insert(text.begin(), static_cast<char>('0' + static_cast<int>(value % 10)));
    value /= 10;
  } while (value > 0);
  return text;
}

}  // namespace

// Reads the columns of a row in order.
class Reader {
 public:
  explicit Reader(const sql::Row& row) : row_(row) {}
  int64_t Int() { return row_.Int(next_++); }
  int32_t Int32() { return static_cast<int32_t>(Int()); }
  bool Bool() { return Int() != 0; }
  std::optional<int64_t> OptionalInt() { return row_.OptionalInt(next_++); }
  std::string Text() { return row_.Text(next_++); }
  Id ReadId() { return Id::FromBytes(row_.Bytes(next_++)).value_or(Id()); }
  template <typename Enum>
  Enum As() {
    return static_cast<Enum>(Int());
  }
  void Skip() { ++next_; }

 private:
  const sql::Row& row_;
  int next_ = 0;
};

Wallet ReadWallet(const sql::Row& row) {
  Reader read(row);
  Wallet wallet;
  read.Skip();  // shard
  wallet.workspace = read.Text();
  wallet.paid_nano_usd = read.Int();
  wallet.granted_nano_usd = read.Int();
  wallet.held_nano_usd = read.Int();
  wallet.receivable_nano_usd = read.Int();
  wallet.open_holds = read.Int();
  wallet.cap_nano_usd = read.OptionalInt();
  wallet.frozen = read.As<Freeze>();
  wallet.sequence = read.Int();
  wallet.head = read.Text();
  wallet.clock_us = read.Int();
  wallet.leased_nano_usd = read.Int();
  wallet.leases = read.Int();
  return wallet;
}

Month ReadMonth(const sql::Row& row) {
  return {row.Text(1), static_cast<int32_t>(row.Int(2)), row.Int(3), row.Int(4)};
}

KeyMonth ReadKeyMonth(const sql::Row& row) {
  return {row.Text(1), row.Text(2), static_cast<int32_t>(row.Int(3)), row.Int(4), row.Int(5)};
}

Hold ReadHold(const sql::Row& row) {
  Reader read(row);
  Hold hold;
  read.Skip();  // shard
  hold.id = read.ReadId();
  hold.workspace = read.Text();
  hold.state = read.As<HoldState>();
  hold.key_id = read.Text();
  hold.model = read.Text();
  hold.rates.input_pico_usd = read.Int();
  hold.rates.output_pico_usd = read.Int();
  hold.price_version = read.Int();
  hold.prompt_bound = read.Int();
  hold.output_bound = read.Int();
  hold.month = read.Int32();
  hold.cap_nano_usd = read.OptionalInt();
  hold.key_quota_nano_usd = read.OptionalInt();
  hold.surface = read.As<Surface>();
  hold.streamed = read.Bool();
  hold.client_request_id = read.Text();
  hold.idempotency_key_digest = read.Text();
  hold.attempt = read.Int32();
  hold.first_authorized_nano_usd = read.Int();
  hold.authorized_nano_usd = read.Int();
  hold.created_us = read.Int();
  hold.expires_us = read.Int();
  hold.sequence = read.Int();
  hold.usage.prompt = read.Int();
  hold.usage.cached = read.Int();
  hold.usage.cache_write = read.Int();
  hold.usage.completion = read.Int();
  hold.usage.reasoning = read.Int();
  hold.outcome = read.As<Outcome>();
  hold.cut_by_credit = read.Bool();
  hold.estimated = read.Bool();
  hold.engine = read.Text();
  hold.charged_nano_usd = read.Int();
  hold.charged_granted_nano_usd = read.Int();
  hold.overrun_nano_usd = read.Int();
  hold.closed_us = read.Int();
  hold.first_token_us = read.Int();
  hold.candidates = DecodeCandidates(read.Text());
  hold.candidate = read.Int32();
  hold.quota_keys = DecodeQuotaKeys(read.Text());
  return hold;
}

Entry ReadEntry(const sql::Row& row) {
  Reader read(row);
  Entry entry;
  read.Skip();  // shard
  entry.workspace = read.Text();
  entry.sequence = read.Int();
  entry.kind = read.As<EntryKind>();
  entry.request = read.Text();
  entry.debit = read.As<Account>();
  entry.credit = read.As<Account>();
  entry.amount_nano_usd = read.Int();
  entry.month = read.Int32();
  entry.at_us = read.Int();
  entry.memo = read.Text();
  entry.detail = read.Text();
  entry.hash = read.Text();
  return entry;
}

Command ReadCommand(const sql::Row& row) {
  Reader read(row);
  Command command;
  read.Skip();  // shard
  command.workspace = read.Text();
  command.command_id = read.Text();
  command.kind = read.As<CommandKind>();
  command.amount_nano_usd = read.Int();
  command.granted = read.Bool();
  command.cap_nano_usd = read.OptionalInt();
  command.at_us = read.Int();
  command.state = read.As<CommandState>();
  command.actor = read.Text();
  command.reason = read.Text();
  command.reference = read.Text();
  command.decided_by = read.Text();
  command.decided_us = read.Int();
  return command;
}

std::string_view Cells::Keep(std::string text) {
  kept_.push_back(std::make_unique<std::string>(std::move(text)));
  return *kept_.back();
}

void Cells::Add(const Wallet& w) {
  cells_.insert(cells_.end(), {LedgerShard(w.workspace), w.workspace, w.paid_nano_usd,
                               w.granted_nano_usd, w.held_nano_usd, w.receivable_nano_usd,
                               w.open_holds, w.cap_nano_usd, static_cast<int>(w.frozen), w.sequence,
                               sql::Param::Blob(w.head), w.clock_us, w.leased_nano_usd, w.leases});
}

void Cells::Add(const Month& m) {
  cells_.insert(cells_.end(), {LedgerShard(m.workspace), m.workspace, m.month, m.spent_nano_usd,
                               m.held_nano_usd});
}

void Cells::Add(const KeyMonth& m) {
  cells_.insert(cells_.end(), {LedgerShard(m.workspace), m.workspace, m.key_id, m.month,
                               m.spent_nano_usd, m.held_nano_usd});
}

void Cells::Add(const Hold& h) {
  cells_.insert(cells_.end(),
                {LedgerShard(h.workspace),
                 sql::Param::Blob(Keep(h.id.ToBytes())),
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
                 h.key_quota_nano_usd,
                 static_cast<int>(h.surface),
                 h.streamed,
                 h.client_request_id,
                 sql::Param::Blob(h.idempotency_key_digest),
                 h.attempt,
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
                 h.closed_us,
                 h.first_token_us,
                 h.candidates.empty() ? std::string_view() : Keep(EncodeCandidates(h.candidates)),
                 h.candidate,
                 h.quota_keys.empty() ? std::string_view() : Keep(EncodeQuotaKeys(h.quota_keys))});
}

void Cells::Add(const Entry& e) {
  cells_.insert(cells_.end(),
                {LedgerShard(e.workspace), e.workspace, e.sequence, static_cast<int>(e.kind),
                 sql::Param::Blob(e.request), static_cast<int>(e.debit), static_cast<int>(e.credit),
                 e.amount_nano_usd, e.month, e.at_us, e.memo, sql::Param::Blob(e.detail),
                 sql::Param::Blob(e.hash)});
}

void Cells::Add(const Command& c) {
  cells_.insert(cells_.end(),
                {LedgerShard(c.workspace), c.workspace, c.command_id, static_cast<int>(c.kind),
                 c.amount_nano_usd, c.granted, c.cap_nano_usd, c.at_us, static_cast<int>(c.state),
                 c.actor, c.reason, c.reference, c.decided_by, c.decided_us});
}

void Cells::AddUsage(const Hold& h) {
  const Usage usage = h.BillableUsage();
  cells_.insert(cells_.end(), {LedgerShard(h.workspace),
                               sql::Param::Blob(Keep(h.id.ToBytes())),
                               h.workspace,
                               h.key_id,
                               h.model,
                               h.engine,
                               static_cast<int>(h.surface),
                               h.streamed,
                               h.client_request_id,
                               h.month,
                               UtcDay(h.created_us),
                               h.created_us,
                               h.closed_us,
                               h.first_token_us,
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

void Cells::AddRollUp(const UsageChange& c, int64_t period) {
  cells_.insert(cells_.end(),
                {LedgerShard(c.workspace), c.workspace, c.key_id, c.model, period, c.requests,
                 c.free_requests, c.usage.prompt, c.usage.cached, c.usage.cache_write,
                 c.usage.completion, c.usage.reasoning, c.charged_nano_usd, c.overrun_nano_usd});
}

}  // namespace tollgate::billing
