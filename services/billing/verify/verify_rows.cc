#include "services/billing/verify/verify_rows.h"

#include "common/base/clock.h"
#include "common/base/ledger_shard.h"
#include "common/base/try.h"
#include "services/billing/domain/chain.h"
#include "services/billing/storage/schema.h"

namespace tollgate::billing {
namespace {

using sql::Row;
using sql::SqlResult;

constexpr size_t kRowBatch = 400;
// A hold must be closed 15 s after its expiry (docs/design/ledger.md, I9). After a start or an
// outage of the ledger nothing expires for one hold TTL.
constexpr int64_t kOverdueUs = 15'000'000;
constexpr int64_t kRestartUs = 300'000'000;

std::string NameOf(const std::string& id) {
  const auto known = Id::FromBytes(id);
  return known ? known->ToHex() : "a bad id";
}

// The terminal entry that a hold in this state must have; 0: none.
int64_t TerminalKind(HoldState state, const HoldSums& sums) {
  switch (state) {
    case HoldState::kOpen:
      return 0;
    case HoldState::kSettled:
      return static_cast<int64_t>(EntryKind::kSettle);
    case HoldState::kVoided:
      return static_cast<int64_t>(EntryKind::kVoid);
    case HoldState::kExpiredCharged:
      return static_cast<int64_t>(EntryKind::kExpireCharge);
    case HoldState::kExpiredVoid:
      return static_cast<int64_t>(EntryKind::kExpireVoid);
    case HoldState::kCorrected:
      return sums.terminal_kind;
  }
  return -1;
}

}  // namespace

RowCheck::RowCheck(sql::Connection& db, WorkspaceState& state, Findings& findings,
                   int64_t latest_us, RowSink* sink, sql::Connection* ledger)
    : db_(db),
      state_(state),
      findings_(findings),
      shard_(LedgerShard(state.workspace)),
      latest_us_(latest_us),
      sink_(sink),
      ledger_(ledger) {}

SqlResult<void> RowCheck::AddHold(const std::string& id, const HoldSums& sums) {
  holds_[id] = sums;
  return holds_.size() < kRowBatch ? SqlResult<void>() : FlushHolds();
}

SqlResult<void> RowCheck::AddCommand(const std::string& id, const CommandSums& sums) {
  commands_[id] = sums;
  return commands_.size() < kRowBatch ? SqlResult<void>() : FlushCommands();
}

SqlResult<void> RowCheck::Flush() {
  TRY(FlushHolds());
  return FlushCommands();
}

SqlResult<void> RowCheck::FlushHolds() {
  static const std::string kHoldHead = "SELECT " + std::string(kHoldColumns) + " FROM hold WHERE";
  static const std::string kUsageHead =
      "SELECT " + std::string(kUsageColumns) + " FROM usage_record WHERE";
  static constexpr sql::Connection::KeyColumn kKey[] = {{"shard", sql::Param::Kind::kInt},
                                                        {"id", sql::Param::Kind::kBlob}};
  if (holds_.empty()) return {};
  std::vector<sql::Param> keys;
  for (const auto& [id, sums] : holds_) {
    keys.insert(keys.end(), {shard_, sql::Param::Blob(id)});
  }
  std::map<std::string, Hold> found;
  std::vector<std::string> ahead;
  auto read = db_.QueryKeys(kHoldHead, kKey, keys, "", [&](const Row& row) {
    Hold hold = ReadHold(row);
    const std::string id = row.Text(1);
    if (IsAhead(hold, holds_.at(id))) return ahead.push_back(id);
    if (sink_ != nullptr) sink_->OnHold(row);
    found.emplace(id, std::move(hold));
  });
  if (!read.ok()) return read;
  for (const auto& [id, sums] : holds_) {
    if (ledger_ != nullptr && !found.contains(id)) ahead.push_back(id);
  }
  for (const std::string& id : ahead) TakeBack(id);
  for (const auto& [id, sums] : holds_) {
    const auto row = found.find(id);
    if (row == found.end()) {
      findings_.Report("no hold for the entries of " + NameOf(id));
    } else {
      CheckHold(row->second, sums);
    }
  }
  // Every closed hold must have a usage record, and open holds must have none.
  std::erase_if(found, [](const auto& row) { return row.second.tombstone(); });
  read = db_.QueryKeys(kUsageHead, kKey, keys, "", [&](const Row& row) {
    const std::string id = row.Text(1);
    const auto hold = found.find(id);
    if (hold == found.end()) {
      return findings_.Report("usage record " + NameOf(id) + " has no hold");
    }
    if (sink_ != nullptr) sink_->OnUsage(row);
    ++findings_.report().usage_records;
    if (hold->second.state == HoldState::kOpen) {
      findings_.Report("usage record " + NameOf(id) + " is of an open hold");
    } else {
      CheckUsage(row, hold->second);
    }
    found.erase(hold);
  });
  if (!read.ok()) return read;
  for (const auto& [id, hold] : found) {
    if (hold.state != HoldState::kOpen) findings_.Report("no usage record for hold " + NameOf(id));
  }
  holds_.clear();
  return {};
}

void RowCheck::TakeBack(const std::string& id) {
  if (auto waiting = holds_.extract(id)) state_.holds[id] = std::move(waiting.mapped());
}

bool RowCheck::IsAhead(const Hold& hold, const HoldSums& sums) const {
  return !entries_ended_ && hold.state == HoldState::kCorrected && !sums.closing.empty() &&
         ClosingDetail(hold) != sums.closing;
}

void RowCheck::CheckHold(const Hold& hold, const HoldSums& sums) {
  ++findings_.report().holds;
  const std::string name = "hold " + hold.id.ToHex();
  const auto expect = [&](int64_t stored, int64_t computed, const char* what) {
    findings_.Expect(stored, computed, name + ' ' + what);
  };
  if (hold.tombstone()) return findings_.Report(name + " is a tombstone with entries");
  if (hold.workspace != state_.workspace) {
    return findings_.Report(name + " is of workspace " + hold.workspace);
  }
  expect(hold.authorized_nano_usd, sums.authorized, "authorized");
  expect(hold.first_authorized_nano_usd, sums.first_authorized, "first authorized");
  expect(hold.charged_nano_usd, sums.charged, "charged");
  expect(hold.charged_granted_nano_usd, sums.charged_granted, "charged to granted credit");
  expect(hold.overrun_nano_usd, sums.overrun, "overrun");
  expect(hold.month, sums.month, "month");
  // An entry is never older than the one before it, so it may be dated later than the event that it
  // records (docs/design/ledger.md 7).
  if (hold.created_us > sums.opened_us) {
    findings_.Report(name + " was admitted after its first entry");
  }
  expect(TerminalKind(hold.state, sums), sums.terminal_kind, "terminal entry");
  if (hold.month != UtcMonth(hold.created_us)) {
    findings_.Report(name + " has the month of another time");
  }
  if (sums.admission_entry > state_.cut_sequence && hold.created_us < state_.cut_us) {
    // Rows are counted by their time of admission.
    --state_.holds_opened;
    if (hold.state != HoldState::kOpen) --state_.holds_closed;
  }
  if (!sums.admission.empty() && AdmissionDetail(hold) != sums.admission) {
    findings_.Report(name + ": key, model, rates, price version, bounds, cap, quota, surface, " +
                     "candidates or request id are not those of entry " +
                     std::to_string(sums.admission_entry));
  }
  const auto asked = static_cast<size_t>(hold.candidate);
  if (hold.candidates.empty()
          ? asked != 0
          : asked >= hold.candidates.size() || hold.Current() != hold.candidates[asked]) {
    findings_.Report(name + " has a model and price that match none of its candidates");
  }
  if (hold.state == HoldState::kOpen) {
    if (hold.key_quota_nano_usd) {
      quota_held_[MovedKey(hold.key_id, hold.month)] += hold.authorized_nano_usd;
    }
    if (latest_us_ > 0 && hold.expires_us < latest_us_ - kOverdueUs - kRestartUs) {
      findings_.Report(name + " is open, " +
                       std::to_string((latest_us_ - hold.expires_us) / kOverdueUs * 15) +
                       " s after its expiry; verify again if the ledger was started just now");
    }
    return;
  }
  CheckClosed(hold, sums);
}

void RowCheck::CheckClosed(const Hold& hold, const HoldSums& sums) {
  const std::string name = "hold " + hold.id.ToHex();
  if (hold.closed_us > sums.closed_us) {
    findings_.Report(name + " was closed after its closing entry");
  }
  const bool corrected = hold.state == HoldState::kCorrected;
  if (corrected && sums.terminal_kind == static_cast<int64_t>(EntryKind::kVoid)) {
    findings_.Report(name + " was voided, but is corrected");
  }
  if (corrected != (sums.corrections > 0)) {
    findings_.Report(name + (corrected ? " is corrected without an entry"
                                       : " has a late correction but is not corrected"));
  }
  if (!sums.closing.empty() && ClosingDetail(hold) != sums.closing) {
    findings_.Report(name +
                     ": usage, outcome, engine, flags or answering model are not those of entry " +
                     std::to_string(sums.closing_entry));
  }
  if (sums.moved != 0) {
    state_.moved[MovedKey(hold.key_id, sums.moved_month)] += sums.moved;
    state_.moved[MovedKey(hold.key_id, hold.month)] -= sums.moved;
  }
}

void RowCheck::CheckUsage(const Row& row, const Hold& hold) {
  const std::string name = "usage record " + hold.id.ToHex();
  // Columns in the order of kUsageColumns, after shard and id.
  if (row.Bytes(2) != hold.workspace) return findings_.Report(name + " is of another workspace");
  if (row.Bytes(3) != hold.key_id) findings_.Report(name + " names another key");
  if (row.Bytes(4) != hold.model) findings_.Report(name + " names another model");
  if (row.Bytes(5) != hold.engine) findings_.Report(name + " names another engine");
  if (row.Bytes(8) != hold.client_request_id) {
    findings_.Report(name + " has another x-request-id");
  }
  const Usage used = hold.BillableUsage();
  const struct {
    int column;
    int64_t expected;
    const char* what;
  } columns[] = {{6, static_cast<int64_t>(hold.surface), "surface"},
                 {7, hold.streamed, "streamed"},
                 {9, hold.month, "month"},
                 {10, UtcDay(hold.created_us), "day"},
                 {11, hold.created_us, "time of admission"},
                 {12, hold.closed_us, "time of closing"},
                 {13, hold.first_token_us, "time to the first token"},
                 {14, used.prompt, "prompt"},
                 {15, used.cached, "cached tokens"},
                 {16, used.cache_write, "cached tokens written"},
                 {17, used.completion, "completion"},
                 {18, used.reasoning, "reasoning tokens"},
                 {19, hold.rates.input_pico_usd, "input rate"},
                 {20, hold.rates.output_pico_usd, "output rate"},
                 {21, hold.price_version, "price version"},
                 {23, hold.charged_nano_usd, "charged"},
                 {24, hold.overrun_nano_usd, "overrun"},
                 {25, static_cast<int64_t>(hold.state), "state"},
                 {26, static_cast<int64_t>(hold.outcome), "outcome"},
                 {27, hold.cut_by_credit, "cut by credit"},
                 {28, hold.estimated, "estimated"}};
  for (const auto& column : columns) {
    if (row.Int(column.column) == column.expected) continue;
    findings_.Report(name + ' ' + column.what + " is " + std::to_string(row.Int(column.column)) +
                     ", by its hold " + std::to_string(column.expected));
  }
  // Recomputes the cost from the columns of the record.
  const Int128 cost = Int128{row.Int(14)} * row.Int(19) + Int128{row.Int(17)} * row.Int(20);
  const Int128 rest = cost - (Int128{row.Int(23)} + row.Int(24)) * 1000;
  if (rest < 0 || rest >= 1000) findings_.Report(name + " is not charged the price of its tokens");
  Int128 stored = 0;
  for (const char digit : row.Bytes(22).substr(0, 36)) stored = stored * 10 + (digit - '0');
  if (stored != cost) findings_.Report(name + " does not have the exact cost of its tokens");
}

SqlResult<void> RowCheck::FlushCommands() {
  static const std::string kHead = "SELECT " + std::string(kCommandColumns) + " FROM command WHERE";
  static constexpr sql::Connection::KeyColumn kKey[] = {{"shard", sql::Param::Kind::kInt},
                                                        {"workspace", sql::Param::Kind::kText},
                                                        {"id", sql::Param::Kind::kText}};
  if (commands_.empty()) return {};
  std::vector<sql::Param> keys;
  for (const auto& [id, sums] : commands_) {
    keys.insert(keys.end(), {shard_, state_.workspace, id});
  }
  sql::Connection& db = ledger_ != nullptr ? *ledger_ : db_;
  auto read = db.QueryKeys(kHead, kKey, keys, "", [&](const Row& row) {
    const Command command = ReadCommand(row);
    const auto sums = commands_.find(command.command_id);
    if (sums == commands_.end()) return;
    CheckCommand(command, sums->second);
    commands_.erase(sums);
  });
  if (!read.ok()) return read;
  for (const auto& [id, sums] : commands_) findings_.Report("no command for the entries of " + id);
  commands_.clear();
  return {};
}

void RowCheck::CheckCommand(const Command& command, const CommandSums& sums) {
  ++findings_.report().commands;
  const std::string name = "command " + command.command_id;
  const auto expect = [&](int64_t stored, int64_t computed, const char* what) {
    findings_.Expect(stored, computed, name + ' ' + what);
  };
  if (sums.kind != 0) expect(static_cast<int64_t>(command.kind), sums.kind, "kind");
  if (sums.kind != 0 && sums.kind != static_cast<int64_t>(CommandKind::kUnfreeze)) {
    expect(command.amount_nano_usd, sums.amount, "amount");
  }
  if (sums.granted >= 0) expect(command.granted, sums.granted, "granted");
  expect(command.at_us, sums.first_us, "time");
  expect(command.decided_us, sums.decided_us, "time of decision");
  const CommandState state = sums.posted > 0     ? CommandState::kPosted
                             : sums.rejected > 0 ? CommandState::kRejected
                                                 : CommandState::kPending;
  expect(static_cast<int64_t>(command.state), static_cast<int64_t>(state), "state");
  if (!sums.detail.empty() && CommandDetail(command) != sums.detail) {
    findings_.Report(name +
                     ": kind, amount, cap, actor, reason or reference are not those of entry " +
                     std::to_string(sums.entry));
  }
  // The memo of the decision names the second person.
  const bool decided = sums.decided_us != 0;
  const bool named = sums.posted > 0 ? sums.memo.find("(approved by " + command.decided_by + ")") !=
                                           std::string::npos
                                     : sums.memo.starts_with(command.decided_by + ": ");
  if (decided != !command.decided_by.empty() || (decided && !named)) {
    findings_.Report(name + " names another person for its decision than entry " +
                     std::to_string(sums.entry));
  }
}

}  // namespace tollgate::billing
