#include "services/billing/storage/verify.h"

#include <charconv>
#include <map>
#include <set>

#include "common/base/clock.h"
#include "services/billing/domain/chain.h"
#include "services/billing/domain/shard.h"
#include "services/billing/storage/schema.h"
#include "services/billing/storage/verify_workspaces.h"

namespace tollgate::billing {
namespace {

using sql::Connection;
using sql::Row;
using sql::SqlResult;

// The sums of the entries of one hold.
struct HoldSums {
  int64_t authorized_nano_usd = 0;
  int64_t held_nano_usd = 0;
  int64_t charged_nano_usd = 0;
  int64_t overrun_nano_usd = 0;
  int opened = 0;
  int terminals = 0;
  int terminal_kind = 0;
  bool corrected = false;
  int64_t month = 0;
};

// The terminal entry that a hold in this state must have; 0: none.
int TerminalKind(HoldState state, const HoldSums& sums) {
  switch (state) {
    case HoldState::kOpen:
      return 0;
    case HoldState::kSettled:
      return static_cast<int>(EntryKind::kSettle);
    case HoldState::kVoided:
      return static_cast<int>(EntryKind::kVoid);
    case HoldState::kExpiredCharged:
      return static_cast<int>(EntryKind::kExpireCharge);
    case HoldState::kExpiredVoid:
      return static_cast<int>(EntryKind::kExpireVoid);
    case HoldState::kCorrected:
      return sums.terminal_kind;
  }
  return 0;
}

struct MonthSums {
  int64_t spent_nano_usd = 0;
  int64_t held_nano_usd = 0;
};

// Recomputes one workspace from its entries.
class WorkspaceCheck {
 public:
  WorkspaceCheck(Connection& db, std::string workspace, Counts counts, VerifyReport& report)
      : db_(db), workspace_(std::move(workspace)), counts_(counts), report_(report) {}

  SqlResult<void> Run() {
    if (auto done = CheckEntries(); !done.ok()) return done;
    if (auto done = CheckWallet(); !done.ok()) return done;
    if (auto done = CheckMonths(); !done.ok()) return done;
    if (auto done = CheckHolds(); !done.ok()) return done;
    return CheckUsage();
  }

 private:
  void Report(const std::string& what) {
    if (report_.violations.size() < kMaxViolations) {
      report_.violations.push_back("workspace " + workspace_ + ": " + what);
    }
  }
  void Expect(int64_t stored, int64_t computed, const std::string& what) {
    if (stored != computed) {
      Report(what + " is " + std::to_string(stored) + ", by the entries " +
             std::to_string(computed));
    }
  }

  SqlResult<void> CheckEntries();
  void CheckEntry(const Entry& entry);
  void AddToBalances(const Entry& entry);
  void AddToHold(const Entry& entry);
  SqlResult<void> CheckWallet();
  SqlResult<void> CheckMonths();
  SqlResult<void> CheckHolds();
  void CheckHold(const Hold& hold);
  SqlResult<void> CheckUsage();

  Connection& db_;
  const std::string workspace_;
  const int32_t shard_ = LedgerShard(workspace_);
  const Counts counts_;
  VerifyReport& report_;

  int64_t sequence_ = 0;
  std::string head_ = std::string(32, '\0');
  int64_t clock_us_ = 0;
  std::map<Account, int64_t> sums_;  // nano-USD
  std::optional<int64_t> cap_nano_usd_;
  int64_t open_holds_ = 0;
  std::map<int64_t, MonthSums> months_;
  std::map<std::string, HoldSums> holds_;  // by request id
  std::map<std::string, Hold> closed_;     // those that must have a usage record
};

SqlResult<void> WorkspaceCheck::CheckEntries() {
  static const std::string kText = "SELECT " + std::string(kEntryColumns) +
                                   " FROM entry WHERE shard = $1 AND workspace = $2"
                                   " AND sequence > $3 ORDER BY sequence LIMIT 10000";
  // In pages, to bound memory for large workspaces.
  for (int64_t after = 0;;) {
    int64_t seen = 0;
    auto read = db_.Query(kText, {shard_, workspace_, after}, [&](const Row& row) {
      const Entry entry = ReadEntry(row);
      after = entry.sequence;
      ++seen;
      CheckEntry(entry);
    });
    if (!read.ok()) return read;
    if (seen < 10000) return {};
  }
}

void WorkspaceCheck::CheckEntry(const Entry& entry) {
  ++report_.entries;
  const std::string name = "entry " + std::to_string(entry.sequence);
  if (entry.sequence != ++sequence_) {
    Report(name + " follows " + std::to_string(sequence_ - 1) + ": entries are missing");
    sequence_ = entry.sequence;
  }
  if (entry.hash != EntryHash(head_, entry)) Report(name + " does not match its hash");
  head_ = entry.hash;
  if (entry.at_us < clock_us_ && entry.kind != EntryKind::kClockRepair)
    Report(name + " is older than the one before it");
  clock_us_ = entry.at_us;
  if (entry.amount_nano_usd < 0) Report(name + " is negative");
  AddToBalances(entry);
  AddToHold(entry);
}

void WorkspaceCheck::AddToBalances(const Entry& entry) {
  const std::string name = "entry " + std::to_string(entry.sequence);
  if (entry.debit != entry.credit) {
    sums_[entry.debit] -= entry.amount_nano_usd;
    sums_[entry.credit] += entry.amount_nano_usd;
  }
  MonthSums& month = months_[entry.month];
  if (entry.credit == Account::kHeld) month.held_nano_usd += entry.amount_nano_usd;
  if (entry.debit == Account::kHeld) month.held_nano_usd -= entry.amount_nano_usd;
  const auto posted_account = [](Account a) {
    return a == Account::kPaid || a == Account::kGranted;
  };
  if (posted_account(entry.debit) && entry.credit == Account::kRevenue) {
    month.spent_nano_usd += entry.amount_nano_usd;
  }
  if (entry.debit == Account::kRevenue && posted_account(entry.credit)) {
    month.spent_nano_usd -= entry.amount_nano_usd;
  }

  const int64_t posted = sums_[Account::kPaid] + sums_[Account::kGranted];
  if (sums_[Account::kPaid] < 0 || sums_[Account::kGranted] < 0 || sums_[Account::kHeld] < 0 ||
      sums_[Account::kHeld] > posted) {
    Report("after " + name + " credit is negative or more is held than posted");
  }
  if (sums_[Account::kFree] != -sums_[Account::kHeld]) {
    Report("after " + name + " free is not -held");
  }
  if (entry.kind == EntryKind::kCapChange) {
    cap_nano_usd_.reset();
    int64_t cap = 0;
    constexpr std::string_view kPrefix = "cap=";
    const char* end = entry.memo.data() + entry.memo.size();
    if (entry.memo.starts_with(kPrefix) &&
        std::from_chars(entry.memo.data() + kPrefix.size(), end, cap).ec == std::errc()) {
      cap_nano_usd_ = cap;
    }
  }
  if (entry.kind == EntryKind::kHold && entry.amount_nano_usd > 0 && cap_nano_usd_ &&
      month.spent_nano_usd + month.held_nano_usd > *cap_nano_usd_) {
    Report(name + " opened a hold beyond the cap");
  }
}

void WorkspaceCheck::AddToHold(const Entry& entry) {
  // Entries of commands.
  if (entry.kind == EntryKind::kTopup || entry.kind == EntryKind::kGrant ||
      entry.kind == EntryKind::kCapChange || entry.kind == EntryKind::kClockRepair ||
      entry.kind >= EntryKind::kRefund) {
    return;
  }
  const std::string name = "entry " + std::to_string(entry.sequence);
  HoldSums& hold = holds_[entry.request];
  const int64_t revenue_nano_usd =
      entry.credit == Account::kRevenue ? entry.amount_nano_usd : -entry.amount_nano_usd;
  switch (entry.kind) {
    case EntryKind::kHold:
      ++hold.opened;
      ++open_holds_;
      hold.month = entry.month;
      [[fallthrough]];
    case EntryKind::kExtend:
      hold.held_nano_usd += entry.amount_nano_usd;
      hold.authorized_nano_usd += entry.amount_nano_usd;
      if (hold.terminals > 0) Report(name + " reserves for a closed hold");
      break;
    case EntryKind::kSettle:
    case EntryKind::kVoid:
    case EntryKind::kExpireCharge:
    case EntryKind::kExpireVoid:
      ++hold.terminals;
      --open_holds_;
      hold.terminal_kind = static_cast<int>(entry.kind);
      hold.held_nano_usd -= entry.amount_nano_usd;
      if (hold.held_nano_usd != 0) Report(name + " does not release exactly the held amount");
      break;
    case EntryKind::kLateCorrection:
      hold.corrected = true;
      [[fallthrough]];
    case EntryKind::kCharge:
      hold.charged_nano_usd += revenue_nano_usd;
      break;
    case EntryKind::kOverrun:
      hold.overrun_nano_usd += revenue_nano_usd;
      break;
    default:
      Report(name + " is of an unknown kind");
  }
  if (hold.opened != 1) Report(name + " belongs to no hold, or to one that was opened twice");
  if (hold.terminals > 1) Report(name + " closes a hold a second time");
  if (!hold.corrected && hold.charged_nano_usd > hold.authorized_nano_usd) {
    Report(name + " charges too much");
  }
}

SqlResult<void> WorkspaceCheck::CheckWallet() {
  static const std::string kText =
      "SELECT " + std::string(kWalletColumns) + " FROM wallet WHERE shard = $1 AND workspace = $2";
  Wallet wallet;
  bool found = false;
  auto read = db_.Query(kText, {shard_, workspace_}, [&](const Row& row) {
    wallet = ReadWallet(row);
    found = true;
  });
  if (!read.ok()) return read;
  if (!found) {
    if (sequence_ > 0) Report("the entries have no wallet");
    return read;
  }
  Expect(wallet.paid_nano_usd, sums_[Account::kPaid], "paid credit");
  Expect(wallet.granted_nano_usd, sums_[Account::kGranted], "granted credit");
  Expect(wallet.held_nano_usd, sums_[Account::kHeld], "the held amount");
  Expect(wallet.sequence, sequence_, "the last sequence");
  Expect(wallet.clock_us, clock_us_, "the clock");
  Expect(wallet.open_holds, open_holds_, "the number of open holds");
  Expect(wallet.cap_nano_usd.value_or(-1), cap_nano_usd_.value_or(-1), "the cap");
  if (wallet.head != head_) Report("the head of the chain is not the last entry's hash");
  return read;
}

SqlResult<void> WorkspaceCheck::CheckMonths() {
  static const std::string kHead = "SELECT " + std::string(kMonthColumns) +
                                   " FROM cap_month WHERE shard = $1 AND workspace = $2";
  int64_t seen = 0;
  auto read = db_.Query(kHead, {shard_, workspace_}, [&](const Row& row) {
    const Month month = ReadMonth(row);
    const std::string name = " of month " + std::to_string(month.month);
    if (!months_.contains(month.month)) Report("no entry is" + name);
    Expect(month.spent_nano_usd, months_[month.month].spent_nano_usd, "spend" + name);
    Expect(month.held_nano_usd, months_[month.month].held_nano_usd, "the held amount" + name);
    months_.erase(month.month);
    ++seen;
  });
  if (!read.ok()) return read;
  Expect(counts_.months, seen, "the number of months");
  for (const auto& [month, sums] : months_) {
    if (sums.spent_nano_usd != 0 || sums.held_nano_usd != 0) {
      Report("no row for month " + std::to_string(month));
    }
  }
  return read;
}

SqlResult<void> WorkspaceCheck::CheckHolds() {
  static const std::string kHead = "SELECT " + std::string(kHoldColumns) + " FROM hold WHERE";
  std::vector<std::string> ids;
  for (const auto& [id, sums] : holds_) ids.push_back(id);
  std::vector<sql::Param> keys;
  for (const std::string& id : ids) keys.insert(keys.end(), {shard_, sql::Param::Blob(id)});
  const int64_t before = report_.holds;
  static constexpr Connection::KeyColumn kKey[] = {{"shard", sql::Param::Kind::kInt},
                                                   {"id", sql::Param::Kind::kBlob}};
  auto read =
      db_.QueryKeys(kHead, kKey, keys, "", [&](const Row& row) { CheckHold(ReadHold(row)); });
  if (!read.ok()) return read;
  Expect(counts_.holds, report_.holds - before, "the number of holds");
  for (const auto& [id, sums] : holds_) {
    const auto known = Id::FromBytes(id);
    Report("no hold for the entries of " + (known ? known->ToHex() : std::string("a bad id")));
  }
  return read;
}

void WorkspaceCheck::CheckHold(const Hold& hold) {
  ++report_.holds;
  const std::string id = hold.id.ToBytes();
  const std::string name = "hold " + hold.id.ToHex();
  const auto found = holds_.find(id);
  if (hold.month == 0) return Report(name + " is a tombstone with entries");
  if (hold.workspace != workspace_) return Report(name + " is of workspace " + hold.workspace);
  const HoldSums sums = found->second;
  holds_.erase(found);
  Expect(hold.authorized_nano_usd, sums.authorized_nano_usd, name + " authorized");
  Expect(hold.charged_nano_usd, sums.charged_nano_usd, name + " charged");
  Expect(hold.overrun_nano_usd, sums.overrun_nano_usd, name + " overrun");
  Expect(hold.month, sums.month, name + " month");
  Expect(TerminalKind(hold.state, sums), sums.terminal_kind, name + " terminal entry");
  if (hold.state == HoldState::kCorrected && sums.terminals != 1) {
    Report(name + " never expired");
  }
  if (hold.state != HoldState::kOpen) closed_.emplace(id, hold);
}

SqlResult<void> WorkspaceCheck::CheckUsage() {
  auto read = db_.Query(
      "SELECT id, prompt, completion, input_pico, output_pico, cost_pico, charged, overrun, key_id,"
      " model, month, day, admitted_us, cached, cache_write, reasoning FROM usage_record"
      " WHERE shard = $1 AND workspace = $2",
      {shard_, workspace_}, [&](const Row& row) {
        ++report_.usage_records;
        const std::string id = row.Text(0);
        const auto found = closed_.find(id);
        const auto known = Id::FromBytes(id);
        const std::string name = "usage record " + (known ? known->ToHex() : std::string("?"));
        if (found == closed_.end()) return Report(name + " has no closed hold");
        const Hold& hold = found->second;
        Expect(row.Int(6), hold.charged_nano_usd, name + " charged");
        Expect(row.Int(7), hold.overrun_nano_usd, name + " overrun");
        Expect(row.Int(10), hold.month, name + " month");
        Expect(row.Int(11), UtcDay(hold.created_us), name + " day");
        Expect(row.Int(12), hold.created_us, name + " time");
        const Usage used = hold.BillableUsage();
        Expect(row.Int(1), used.prompt, name + " prompt");
        Expect(row.Int(2), used.completion, name + " completion");
        Expect(row.Int(13), used.cached, name + " cached tokens");
        Expect(row.Int(14), used.cache_write, name + " cached tokens written");
        Expect(row.Int(15), used.reasoning, name + " reasoning tokens");
        if (row.Bytes(8) != hold.key_id || row.Bytes(9) != hold.model) {
          Report(name + " names another key or model");
        }
        // The cost, recomputed from the columns of the record.
        const Int128 cost = Int128{row.Int(1)} * row.Int(3) + Int128{row.Int(2)} * row.Int(4);
        const Int128 rest = cost - (Int128{row.Int(6)} + row.Int(7)) * 1000;
        if (rest < 0 || rest >= 1000) Report(name + " is not charged the price of its tokens");
        Int128 stored = 0;
        for (const char digit : row.Bytes(5)) stored = stored * 10 + (digit - '0');
        if (stored != cost) Report(name + " does not have the exact cost of its tokens");
        closed_.erase(found);
      });
  if (!read.ok()) return read;
  for (const auto& [id, hold] : closed_) Report("no usage record for hold " + hold.id.ToHex());
  return read;
}

}  // namespace

SqlResult<VerifyReport> VerifyLedger(sql::Database& database, const std::string& workspace) {
  VerifyReport report;
  // One snapshot for everything; the ledger keeps running.
  auto done = database.Transact(sql::TxMode::kRead, [&](Connection& db) -> SqlResult<void> {
    report = {};
    if (db.dialect() == sql::Dialect::kPostgres) {
      auto unlimited = db.ExecuteScript("SET LOCAL statement_timeout = 0");
      if (!unlimited.ok()) return unlimited;
    }
    std::map<std::string, Counts> workspaces;
    std::set<std::string> misplaced;
    if (auto read = CollectWorkspaces(db, workspace, workspaces, misplaced); !read.ok())
      return read;
    for (const std::string& name : misplaced) {
      report.violations.push_back("workspace " + name + ": rows with another shard than its own");
    }
    for (const auto& [name, counts] : workspaces) {
      if (auto read = WorkspaceCheck(db, name, counts, report).Run(); !read.ok()) return read;
      ++report.workspaces;
    }
    return {};
  });
  if (!done.ok()) return Fail{std::move(done).error()};
  return report;
}

}  // namespace tollgate::billing
