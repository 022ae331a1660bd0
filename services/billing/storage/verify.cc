#include "services/billing/storage/verify.h"

#include <charconv>
#include <map>

#include "common/base/clock.h"
#include "services/billing/domain/chain.h"
#include "services/billing/storage/schema.h"

namespace tollgate::billing {
namespace {

using sql::Connection;
using sql::Row;
using sql::SqlResult;

// What the entries of one request add up to.
struct Story {
  int64_t authorized = 0;
  int64_t held = 0;
  int64_t charged = 0;
  int64_t overrun = 0;
  int opened = 0;
  int terminals = 0;
  int terminal_kind = 0;
  bool corrected = false;
  int64_t month = 0;
};

struct MonthSums {
  int64_t spent = 0;
  int64_t held = 0;
};

// Rows of one workspace, counted in one pass over each table: those tables have no index by
// workspace.
struct Counts {
  int64_t holds = 0;
  int64_t months = 0;
};

// Replays one workspace.
class Replay {
 public:
  Replay(Connection& db, std::string workspace, Counts counts, VerifyReport& report)
      : db_(db), workspace_(std::move(workspace)), counts_(counts), report_(report) {}

  SqlResult<void> Run() {
    if (auto done = Entries(); !done.ok()) return done;
    if (auto done = CheckWallet(); !done.ok()) return done;
    if (auto done = CheckMonths(); !done.ok()) return done;
    if (auto done = CheckHolds(); !done.ok()) return done;
    return CheckUsage();
  }

 private:
  void Wrong(const std::string& what) {
    if (report_.violations.size() < kMaxViolations) {
      report_.violations.push_back("workspace " + workspace_ + ": " + what);
    }
  }
  void Expect(int64_t stored, int64_t computed, const std::string& what) {
    if (stored != computed) {
      Wrong(what + " is " + std::to_string(stored) + ", the entries say " +
            std::to_string(computed));
    }
  }

  SqlResult<void> Entries();
  void OneEntry(const Entry& entry);
  void MoneyOf(const Entry& entry);
  void StoryOf(const Entry& entry);
  SqlResult<void> CheckWallet();
  SqlResult<void> CheckMonths();
  SqlResult<void> CheckHolds();
  void OneHold(const Hold& hold);
  SqlResult<void> CheckUsage();

  Connection& db_;
  const std::string workspace_;
  const Counts counts_;
  VerifyReport& report_;

  int64_t sequence_ = 0;
  std::string head_ = std::string(32, '\0');
  int64_t clock_us_ = 0;
  std::map<Account, int64_t> sums_;
  std::optional<int64_t> cap_;
  int64_t open_holds_ = 0;
  std::map<int64_t, MonthSums> months_;
  std::map<std::string, Story> stories_;  // by request id
  std::map<std::string, Hold> closed_;    // those that must have a usage record
};

SqlResult<void> Replay::Entries() {
  static const std::string kText = "SELECT " + std::string(kEntryColumns) +
                                   " FROM entry WHERE workspace = $1 AND sequence > $2"
                                   " ORDER BY sequence LIMIT 10000";
  // In pages, so that no driver has to hold all of a large workspace at once.
  for (int64_t after = 0;;) {
    int64_t seen = 0;
    auto read = db_.Query(kText, {workspace_, after}, [&](const Row& row) {
      const Entry entry = ReadEntry(row);
      after = entry.sequence;
      ++seen;
      OneEntry(entry);
    });
    if (!read.ok()) return read;
    if (seen < 10000) return {};
  }
}

void Replay::OneEntry(const Entry& entry) {
  ++report_.entries;
  const std::string name = "entry " + std::to_string(entry.sequence);
  if (entry.sequence != ++sequence_) {
    Wrong(name + " follows " + std::to_string(sequence_ - 1) + ": entries are missing");
    sequence_ = entry.sequence;
  }
  if (entry.hash != EntryHash(head_, entry)) Wrong(name + " does not match its hash");
  head_ = entry.hash;
  if (entry.at_us < clock_us_) Wrong(name + " is older than the one before it");
  clock_us_ = entry.at_us;
  if (entry.amount < 0) Wrong(name + " is negative");
  MoneyOf(entry);
  StoryOf(entry);
}

void Replay::MoneyOf(const Entry& entry) {
  const std::string name = "entry " + std::to_string(entry.sequence);
  if (entry.debit != entry.credit) {
    sums_[entry.debit] -= entry.amount;
    sums_[entry.credit] += entry.amount;
  }
  MonthSums& month = months_[entry.month];
  if (entry.credit == Account::kHeld) month.held += entry.amount;
  if (entry.debit == Account::kHeld) month.held -= entry.amount;
  const auto customers = [](Account a) { return a == Account::kPaid || a == Account::kGranted; };
  if (customers(entry.debit) && entry.credit == Account::kRevenue) month.spent += entry.amount;
  if (entry.debit == Account::kRevenue && customers(entry.credit)) month.spent -= entry.amount;

  const int64_t posted = sums_[Account::kPaid] + sums_[Account::kGranted];
  if (sums_[Account::kPaid] < 0 || sums_[Account::kGranted] < 0 || sums_[Account::kHeld] < 0 ||
      sums_[Account::kHeld] > posted) {
    Wrong("after " + name + " credit is negative or more is held than there is");
  }
  if (sums_[Account::kFree] != -sums_[Account::kHeld])
    Wrong("after " + name + " free is not -held");
  if (entry.kind == EntryKind::kCapChange) {
    cap_.reset();
    int64_t cap = 0;
    constexpr std::string_view kPrefix = "cap=";
    const char* end = entry.memo.data() + entry.memo.size();
    if (entry.memo.starts_with(kPrefix) &&
        std::from_chars(entry.memo.data() + kPrefix.size(), end, cap).ec == std::errc()) {
      cap_ = cap;
    }
  }
  if (entry.kind == EntryKind::kHold && entry.amount > 0 && cap_ &&
      month.spent + month.held > *cap_) {
    Wrong(name + " opened a hold beyond the cap");
  }
}

void Replay::StoryOf(const Entry& entry) {
  if (entry.kind == EntryKind::kTopup || entry.kind == EntryKind::kGrant ||
      entry.kind == EntryKind::kCapChange) {
    return;
  }
  const std::string name = "entry " + std::to_string(entry.sequence);
  Story& story = stories_[entry.request];
  switch (entry.kind) {
    case EntryKind::kHold:
      ++story.opened;
      ++open_holds_;
      story.month = entry.month;
      [[fallthrough]];
    case EntryKind::kExtend:
      story.held += entry.amount;
      story.authorized += entry.amount;
      if (story.terminals > 0) Wrong(name + " reserves for a hold that is over");
      break;
    case EntryKind::kSettle:
    case EntryKind::kVoid:
    case EntryKind::kExpireCharge:
    case EntryKind::kExpireVoid:
      ++story.terminals;
      --open_holds_;
      story.terminal_kind = static_cast<int>(entry.kind);
      story.held -= entry.amount;
      if (story.held != 0) Wrong(name + " does not release exactly what was held");
      break;
    case EntryKind::kLateCorrection:
      story.corrected = true;
      [[fallthrough]];
    case EntryKind::kCharge:
      story.charged += entry.credit == Account::kRevenue ? entry.amount : -entry.amount;
      break;
    case EntryKind::kOverrun:
      story.overrun += entry.credit == Account::kRevenue ? entry.amount : -entry.amount;
      break;
    default:
      Wrong(name + " is of an unknown kind");
  }
  if (story.opened != 1) Wrong(name + " belongs to no hold, or to one opened twice");
  if (story.terminals > 1) Wrong(name + " ends a hold a second time");
  if (!story.corrected && story.charged > story.authorized) Wrong(name + " charges too much");
}

SqlResult<void> Replay::CheckWallet() {
  static const std::string kText =
      "SELECT " + std::string(kWalletColumns) + " FROM wallet WHERE workspace = $1";
  Wallet wallet;
  bool found = false;
  auto read = db_.Query(kText, {workspace_}, [&](const Row& row) {
    wallet = ReadWallet(row);
    found = true;
  });
  if (!read.ok()) return read;
  if (!found) {
    if (sequence_ > 0) Wrong("entries without a wallet");
    return read;
  }
  Expect(wallet.paid, sums_[Account::kPaid], "paid credit");
  Expect(wallet.granted, sums_[Account::kGranted], "granted credit");
  Expect(wallet.held, sums_[Account::kHeld], "what is held");
  Expect(wallet.sequence, sequence_, "the last sequence");
  Expect(wallet.clock_us, clock_us_, "the clock");
  Expect(wallet.open_holds, open_holds_, "the number of open holds");
  Expect(wallet.cap.value_or(-1), cap_.value_or(-1), "the cap");
  if (wallet.head != head_) Wrong("the head of the chain is not the last entry's hash");
  return read;
}

SqlResult<void> Replay::CheckMonths() {
  static const std::string kHead =
      "SELECT " + std::string(kMonthColumns) + " FROM cap_month WHERE id IN";
  std::vector<std::string> ids;
  for (const auto& [month, sums] : months_) {
    ids.push_back(MonthKey(workspace_, static_cast<int32_t>(month)));
  }
  const std::vector<sql::Param> keys(ids.begin(), ids.end());
  int64_t seen = 0;
  auto read = db_.QueryIn(kHead, keys, "", [&](const Row& row) {
    const Month month = ReadMonth(row);
    const std::string name = " of month " + std::to_string(month.month);
    Expect(month.spent, months_[month.month].spent, "spend" + name);
    Expect(month.held, months_[month.month].held, "what is held" + name);
    months_.erase(month.month);
    ++seen;
  });
  if (!read.ok()) return read;
  Expect(counts_.months, seen, "the number of months");
  for (const auto& [month, sums] : months_) {
    if (sums.spent != 0 || sums.held != 0) Wrong("no row for month " + std::to_string(month));
  }
  return read;
}

SqlResult<void> Replay::CheckHolds() {
  static const std::string kHead = "SELECT " + std::string(kHoldColumns) + " FROM hold WHERE id IN";
  std::vector<std::string> ids;
  for (const auto& [id, story] : stories_) ids.push_back(id);
  std::vector<sql::Param> keys;
  for (const std::string& id : ids) keys.push_back(sql::Param::Blob(id));
  const int64_t before = report_.holds;
  auto read = db_.QueryIn(kHead, keys, "", [&](const Row& row) { OneHold(ReadHold(row)); });
  if (!read.ok()) return read;
  Expect(counts_.holds, report_.holds - before, "the number of holds");
  for (const auto& [id, story] : stories_) {
    const auto known = Id::FromBytes(id);
    Wrong("no hold for the entries of " + (known ? known->ToHex() : std::string("a bad id")));
  }
  return read;
}

void Replay::OneHold(const Hold& hold) {
  ++report_.holds;
  const std::string id = hold.id.ToBytes();
  const std::string name = "hold " + hold.id.ToHex();
  const auto found = stories_.find(id);
  if (hold.month == 0) return Wrong(name + " is a tombstone with entries");
  if (hold.workspace != workspace_) return Wrong(name + " is of workspace " + hold.workspace);
  const Story story = found->second;
  stories_.erase(found);
  Expect(hold.authorized, story.authorized, name + " authorized");
  Expect(hold.charged, story.charged, name + " charged");
  Expect(hold.overrun, story.overrun, name + " overrun");
  Expect(hold.month, story.month, name + " month");
  int wanted = 0;
  switch (hold.state) {
    case HoldState::kOpen:
      wanted = 0;
      break;
    case HoldState::kSettled:
      wanted = static_cast<int>(EntryKind::kSettle);
      break;
    case HoldState::kVoided:
      wanted = static_cast<int>(EntryKind::kVoid);
      break;
    case HoldState::kExpiredCharged:
      wanted = static_cast<int>(EntryKind::kExpireCharge);
      break;
    case HoldState::kExpiredVoid:
      wanted = static_cast<int>(EntryKind::kExpireVoid);
      break;
    case HoldState::kCorrected:
      wanted = story.terminal_kind;
      break;
  }
  Expect(wanted, story.terminal_kind, name + " end");
  if (hold.state == HoldState::kCorrected && story.terminals != 1) Wrong(name + " never expired");
  if (hold.state != HoldState::kOpen) closed_.emplace(id, hold);
}

SqlResult<void> Replay::CheckUsage() {
  auto read = db_.Query(
      "SELECT id, prompt, completion, input_pico, output_pico, cost_pico, charged, overrun, key_id,"
      " model, month, day, admitted_us, cached, cache_write, reasoning FROM usage_record"
      " WHERE workspace = $1",
      {workspace_}, [&](const Row& row) {
        ++report_.usage_records;
        const std::string id = row.Text(0);
        const auto found = closed_.find(id);
        const auto known = Id::FromBytes(id);
        const std::string name = "usage record " + (known ? known->ToHex() : std::string("?"));
        if (found == closed_.end()) return Wrong(name + " has no closed hold");
        const Hold& hold = found->second;
        Expect(row.Int(6), hold.charged, name + " charged");
        Expect(row.Int(7), hold.overrun, name + " overrun");
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
          Wrong(name + " names another key or model");
        }
        // The price of what was used, once more, and from the record's own columns.
        const Int128 cost = Int128{row.Int(1)} * row.Int(3) + Int128{row.Int(2)} * row.Int(4);
        const Int128 rest = cost - (Int128{row.Int(6)} + row.Int(7)) * 1000;
        if (rest < 0 || rest >= 1000) Wrong(name + " was not charged the price of its tokens");
        Int128 stored = 0;
        for (const char digit : row.Bytes(5)) stored = stored * 10 + (digit - '0');
        if (stored != cost) Wrong(name + " has another exact cost than its tokens");
        closed_.erase(found);
      });
  if (!read.ok()) return read;
  for (const auto& [id, hold] : closed_) Wrong("no usage record for hold " + hold.id.ToHex());
  return read;
}

}  // namespace

namespace {

// Every workspace that has a row anywhere, so that none is missed because its wallet has gone.
// Tombstones alone need no wallet.
SqlResult<void> Collect(Connection& db, const std::string& workspace,
                        std::map<std::string, Counts>& workspaces) {
  const std::string all = workspace.empty() ? "1 = 1" : "workspace = $1";
  std::vector<sql::Param> params;
  if (!workspace.empty()) params.push_back(workspace);
  auto read = db.Query(
      "SELECT workspace, count(*) FROM hold WHERE month <> 0 AND " + all + " GROUP BY workspace",
      params, [&](const Row& row) { workspaces[row.Text(0)].holds = row.Int(1); });
  if (!read.ok()) return read;
  read = db.Query("SELECT workspace, count(*) FROM cap_month WHERE " + all + " GROUP BY workspace",
                  params, [&](const Row& row) { workspaces[row.Text(0)].months = row.Int(1); });
  if (!read.ok()) return read;
  if (!workspace.empty()) {
    workspaces[workspace];
    return {};
  }
  return db.Query(
      "SELECT workspace FROM wallet UNION SELECT workspace FROM entry UNION"
      " SELECT workspace FROM usage_record",
      params, [&](const Row& row) { workspaces[row.Text(0)]; });
}

}  // namespace

SqlResult<VerifyReport> VerifyLedger(sql::Database& database, const std::string& workspace) {
  VerifyReport report;
  // One snapshot for everything: the ledger goes on working meanwhile.
  auto done = database.Transact(sql::TxMode::kRead, [&](Connection& db) -> SqlResult<void> {
    report = {};
    if (db.dialect() == sql::Dialect::kPostgres) {
      auto unlimited = db.ExecuteScript("SET LOCAL statement_timeout = 0");
      if (!unlimited.ok()) return unlimited;
    }
    std::map<std::string, Counts> workspaces;
    if (auto read = Collect(db, workspace, workspaces); !read.ok()) return read;
    for (const auto& [name, counts] : workspaces) {
      if (auto read = Replay(db, name, counts, report).Run(); !read.ok()) return read;
      ++report.workspaces;
    }
    return {};
  });
  if (!done.ok()) return Fail{std::move(done).error()};
  return report;
}

}  // namespace tollgate::billing
